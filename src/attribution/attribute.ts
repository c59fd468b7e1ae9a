import {
  createAttributedForward,
  techniques,
  type AttributedTileResult,
  type Fa4Configuration,
} from '../../kernels/index.js';
import { attentionOracle, type AttentionReference } from '../../oracles/index.js';
import type { Problem } from '../problem.js';
import type { Attribution } from './attribution.js';
import { ErrorMeter, errorUnits } from './error-measure.js';
import { summariseLags } from './maximum-lag.js';
import { planRuns } from './run-plan.js';
import { createTechniqueMeter, interactionOf } from './technique-meter.js';
import { createWeightRoundingMeter } from './weight-rounding.js';

export interface AttributionOptions {
  /** What to choose otherwise than FlashAttention-4 would for this problem. */
  readonly configuration?: Partial<Fa4Configuration>;
  /** The problem's exact attention, where it is known already. */
  readonly reference?: AttentionReference;
  /** Called with how many tiles are done and how many there are. */
  readonly progress?: (done: number, total: number) => void;
}

/**
 * Shares the error of FlashAttention-4's forward on a problem out among its techniques: each alone,
 * the whole without each, and each added in the order of the kernel (`techniques` tells what they
 * are). A lagging maximum is no technique: to see what it does, attribute the same problem with a
 * rescale threshold of 0 as well, as `attributeLag` does.
 *
 * Elements that are not finite in the oracle or in a run are counted and left out. Time is that of
 * some twenty forwards; memory, beyond inputs and oracle, that of one tile for each of 38 runs.
 *
 * @throws RequestError for a problem that the kernel does not take and for a configuration out of
 * range.
 */
export function attributeError(problem: Problem, options: AttributionOptions = {}): Attribution {
  const plan = planRuns();
  const forward = createAttributedForward(problem, plan.choices, options.configuration);
  const reference = options.reference ?? attentionOracle(problem);
  const { shape, configuration, tiles } = forward;
  const { rescaleThreshold } = configuration;
  const outputFormat = problem.q.format;
  const units = errorUnits(reference, outputFormat);
  const [total, beforeRounding, exact] = Array.from({ length: 3 }, () => new ErrorMeter(units));
  const meters = techniques.map((technique) => createTechniqueMeter(technique, plan, units));
  const weightRounding = createWeightRoundingMeter(problem, shape, units, plan);
  const lags: Float64Array[] = [];
  const values = new Float64Array(plan.choices.length);

  function addTile(result: AttributedTileResult, first: number): void {
    const { outputs } = result;
    for (let i = 0; i < outputs[0].length; i++) {
      const element = first * shape.vDim + i;
      for (let run = 0; run < values.length; run++) values[run] = outputs[run][i];
      total.add(element, values[plan.all] - units.exact[element]);
      beforeRounding.add(element, values[plan.without['output-round']] - units.exact[element]);
      exact.add(element, values[plan.none] - units.exact[element]);
      for (const meter of meters) meter.add(element, values);
    }
    weightRounding.addTile(result, first);
    lags.push(result.lags);
  }

  for (let tile = 0; tile < tiles; tile++) {
    addTile(forward.runTile(tile), forward.rowsOf(tile).first);
    options.progress?.(tile + 1, tiles);
  }
  const attributed = meters.map((meter) => meter.result());
  return {
    shape,
    outputFormat,
    configuration: {
      ...configuration,
      rescaleThreshold: rescaleThreshold === Infinity ? 'inf' : rescaleThreshold,
    },
    largestOutput: reference.out.reduce(
      (max, x) => (Number.isFinite(x) ? Math.max(max, Math.abs(x)) : max),
      0,
    ),
    total: total.measure(),
    beforeRounding: beforeRounding.measure(),
    exact: exact.measure(),
    techniques: attributed,
    interaction: interactionOf(attributed),
    weightRounding: weightRounding.result(),
    lag: summariseLags(lags),
  };
}

/** The attribution of a problem with its rescale threshold, and with always rescaling. */
export interface LagAttribution {
  readonly lagging: Attribution;
  readonly alwaysRescaled: Attribution;
}

/**
 * What a lagging maximum does: the same problem and configuration with the threshold as it is and
 * with threshold 0, against the same oracle.
 * @throws RequestError as `attributeError`.
 */
export function attributeLag(problem: Problem, options: AttributionOptions = {}): LagAttribution {
  const reference = options.reference ?? attentionOracle(problem);
  const lagging = attributeError(problem, { ...options, reference });
  const configuration = { ...options.configuration, rescaleThreshold: 0 };
  const alwaysRescaled = attributeError(problem, { ...options, reference, configuration });
  return { lagging, alwaysRescaled };
}
