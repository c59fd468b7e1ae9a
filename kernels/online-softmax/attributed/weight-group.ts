import { groupRuns, type RunGroup } from '../../run-groups.js';
import type { Recipe } from '../recipe.js';
import {
  type BlockProducts,
  type BlockValues,
  createOutputSums,
  outputSumTechniques,
} from './output-sums.js';
import type { BlockWeights, ExponentScale } from './weights.js';
import {
  emulatedLogSumExp,
  exactLogSumExp,
  normalisedOutput,
  roundedOutput,
  rowLogSumExps,
} from './finish.js';
import { createTileSink } from './sink.js';
import type { RunningMaximum } from './running-maximum.js';
import { createRowSums, rowSumTechniques } from './row-sums.js';
import type { EmulatedTechniques, Technique } from '../../techniques.js';

/** The results of one run on a tile: outputs [rows × vDim], LSEs and row sums [rows]. */
interface RunResult {
  readonly run: number;
  readonly out: Float64Array;
  readonly lse: Float64Array;
  readonly rowSums: Float64Array;
}

/** Runs with the same weights: all later steps, on a tile's way through the blocks. */
interface WeightGroup {
  /** Techniques that decide the weights and that the runs emulate. */
  readonly emulated: EmulatedTechniques;
  readonly begin: (rows: number) => void;
  readonly step: (
    path: RunningMaximum,
    weights: BlockWeights,
    values: BlockValues,
    products: BlockProducts,
  ) => void;
  /** Takes the maxima in use at the end, scores before their exponents, and the logit of the sink, −∞ for none. */
  readonly finish: (maxima: Float64Array, sink: number) => readonly RunResult[];
}

/** Parameters that all groups of a tile share. */
interface GroupSetting {
  readonly recipe: Recipe;
  readonly scale: ExponentScale;
  readonly vDim: number;
  /** vDim padded for the tensor cores. */
  readonly columns: number;
}

/**
 * Makes a group. Runs that agree up to the sums O or the row sums l share these too.
 *
 * @param choices for each run of the problem the techniques that are emulated
 */
export function createWeightGroup(
  { emulated, runs }: RunGroup<Technique>,
  choices: readonly EmulatedTechniques[],
  { recipe, scale, vDim, columns }: GroupSetting,
): WeightGroup {
  const chosen = runs.map((run) => choices[run]);
  const ofSums = groupRuns(chosen, rowSumTechniques);
  const ofOutputs = groupRuns(chosen, outputSumTechniques);
  const rowSums = ofSums.groups.map((group) => createRowSums(group.emulated, recipe));
  const outputSums = ofOutputs.groups.map((group) =>
    createOutputSums(group.emulated, recipe.tiling.queries, columns),
  );
  const logSumExps = {
    emulated: emulatedLogSumExp(recipe),
    exact: exactLogSumExp(scale),
  };
  const sink = createTileSink(recipe, scale);
  let rows = 0;

  return {
    emulated,
    begin: (count) => {
      rows = count;
      for (const state of [...rowSums, ...outputSums]) state.begin(rows);
    },
    step: (path, weights, values, products) => {
      for (const state of rowSums) state.step(path, weights);
      for (const state of outputSums) state.step(path, products, values);
    },
    finish: (maxima, logit) => {
      const shared = {
        out: new Map<string, Float64Array>(),
        lse: new Map<string, Float64Array>(),
      };
      const once = (kind: keyof typeof shared, key: string, make: () => Float64Array) => {
        const value = shared[kind].get(key) ?? make();
        shared[kind].set(key, value);
        return value;
      };
      const finals = rowSums.map((state, i) =>
        sink.sums(
          maxima,
          state.totals(),
          logit,
          new Set([...emulated, ...ofSums.groups[i].emulated]),
        ),
      );
      return runs.map((run, i) => {
        const [choice, sum, output] = [chosen[i], ofSums.groupOf[i], ofOutputs.groupOf[i]];
        const finish = choice.has('normalise') ? 'emulated' : 'exact';
        const lse = once('lse', `${sum} ${finish}`, () =>
          rowLogSumExps(
            sink.maxima(maxima, logit, finish === 'emulated'),
            finals[sum],
            rows,
            logSumExps[finish],
          ),
        );
        const key = `${output} ${sum} ${finish}`;
        const unrounded = once('out', key, () =>
          normalisedOutput(
            outputSums[output].sums,
            finals[sum],
            { rows, columns, vDim },
            finish === 'emulated' ? recipe.finish.reciprocal : null,
          ),
        );
        const out = choice.has('output-round')
          ? roundedOutput(unrounded, recipe.outFormat)
          : unrounded;
        return { run, out, lse, rowSums: finals[sum] };
      });
    },
  };
}
