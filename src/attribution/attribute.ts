import { attentionOracle, type AttentionReference } from '../../oracles/index.js';
import {
  defaultKernelModel,
  type AttributedPiece,
  type KernelSettings,
} from '../../kernels/index.js';
import type { Problem } from '../problem/index.js';
import { RequestError } from '../request-error.js';
import {
  type AttributedTilesOptions,
  planRuns,
  tileErrors,
  type TileErrors,
} from './tile-errors.js';
import {
  type Attribution,
  createTechniqueMeter,
  createWeightRoundingMeter,
  interactionOf,
  summariseLags,
} from './attribution.js';
import { ErrorMeter, errorUnits, LseMeter } from './error-measure.js';
import { attributedKernel, chosenKernel } from './kernel-choice.js';

/** Options of an attribution, and a receiver of the errors of each tile. */
export interface AttributionOptions extends AttributedTilesOptions {
  /** Called with the errors of groups of rows, one after the other, as `attributeTiles` gives them. */
  readonly onTile?: (tile: TileErrors) => void;
}

function largestFinite(values: Float64Array): number {
  return values.reduce((max, x) => (Number.isFinite(x) ? Math.max(max, Math.abs(x)) : max), 0);
}

/**
 * Shares a kernel's error on a problem out among its techniques: each alone, the whole without each, and
 * each added in the order of the kernel. The kernel is FlashAttention-4's forward by default; the
 * `definitions` of its `AttributedKernel` describe its techniques. A lagging maximum is no technique: to
 * see its effect, attribute the same problem with a rescale threshold of 0 as well, as `attributeLag`
 * does.
 *
 * Elements that are not finite in the oracle or in a run are counted and left out. Time is that of some
 * twenty forwards; memory, beyond inputs and oracle, that of one tile for each of some 40 runs.
 *
 * @throws RequestError for an unknown kernel, for a problem that it does not take, for settings or a
 * configuration that it does not have or that cannot be attributed
 */
export function attributeError(problem: Problem, options: AttributionOptions = {}): Attribution {
  const kernel = attributedKernel(problem, options);
  const { shape, outFormat, pieces } = kernel;
  const plan = planRuns(kernel.techniques);
  const reference: AttentionReference = options.reference ?? attentionOracle(problem);
  const units = errorUnits(reference, outFormat);
  const [total, beforeRounding, exact] = Array.from({ length: 3 }, () => new ErrorMeter(units));
  const [totalLse, exactLse] = [new LseMeter(), new LseMeter()];
  const meters = plan.techniques.map((technique) => createTechniqueMeter(technique, plan, units));
  const weightRounding = createWeightRoundingMeter(problem, outFormat, units, plan);
  const lags: Float64Array[] = [];
  const values = new Float64Array(plan.choices.length);

  function addOutputs({ firstRow, outputs }: AttributedPiece): void {
    for (let i = 0; i < outputs[0].length; i++) {
      const element = firstRow * shape.vDim + i;
      for (let run = 0; run < values.length; run++) values[run] = outputs[run][i];
      total.add(element, values[plan.all] - units.exact[element]);
      beforeRounding.add(element, values[plan.without['output-round']] - units.exact[element]);
      exact.add(element, values[plan.none] - units.exact[element]);
      for (const meter of meters) meter.add(element, values);
    }
  }

  function addLses({ firstRow, rows, lse }: AttributedPiece): void {
    for (let row = 0; row < rows; row++) {
      const oracle = reference.quantities.lse.values[firstRow + row];
      totalLse.add(lse[plan.all][row], oracle);
      exactLse.add(lse[plan.none][row], oracle);
      meters.forEach((meter, i) => meter.addLse(lse[plan.alone[plan.techniques[i]]][row], oracle));
    }
  }

  const run = kernel.prepareRuns(plan.choices);
  for (let index = 0; index < pieces; index++) {
    const piece = run(index);
    addOutputs(piece);
    addLses(piece);
    weightRounding.addPiece(piece);
    if (piece.lags !== null) lags.push(piece.lags);
    options.onTile?.(tileErrors(piece, plan, reference));
    options.progress?.(index + 1, pieces);
  }
  const attributed = meters.map((meter) => meter.result());
  return {
    kernel: kernel.model,
    settings: kernel.settings,
    shape,
    outputFormat: outFormat,
    largestOutput: largestFinite(reference.quantities.out.values),
    total: total.measure(),
    beforeRounding: beforeRounding.measure(),
    exact: exact.measure(),
    techniques: attributed,
    interaction: interactionOf(attributed),
    lse: { total: totalLse.measure(), exact: exactLse.measure() },
    weightRounding: weightRounding.result(),
    lag: lags.length === 0 ? null : summariseLags(lags),
  };
}

/** The attribution of a problem with its rescale threshold, and with always rescaling. */
export interface LagAttribution {
  readonly lagging: Attribution;
  readonly alwaysRescaled: Attribution;
}

/**
 * The effect of a lagging maximum: attributions of the same problem and settings as they are and with a
 * maximum that never lags, for FlashAttention-4 a rescale threshold of 0, against the same oracle.
 * @throws RequestError as `attributeError`, and for a kernel whose maximum cannot lag
 */
export function attributeLag(problem: Problem, options: AttributionOptions = {}): LagAttribution {
  const { model, settings } = chosenKernel(options);
  if (model.unlagged === null)
    throw new RequestError(
      `the maximum of ${model.name} cannot lag; ${defaultKernelModel.name}'s can`,
    );
  const reference = options.reference ?? attentionOracle(problem);
  const attributed = (chosen: KernelSettings): Attribution =>
    attributeError(problem, {
      ...options,
      kernel: model,
      settings: chosen,
      configuration: undefined,
      reference,
    });
  return {
    lagging: attributed(settings),
    alwaysRescaled: attributed(new Map([...settings, ...Object.entries(model.unlagged)])),
  };
}
