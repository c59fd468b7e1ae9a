import { groupRuns, type RunGroup } from '../../run-groups.js';
import type { EmulatedTechniques, Technique } from '../../techniques.js';
import type { Recipe } from '../recipe.js';
import { recipeSteps, sinkExponent } from '../steps.js';
import { exp2Units } from '../units.js';
import {
  emulatedLogSumExp,
  exactLogSumExp,
  normalisedOutput,
  roundedOutput,
  rowLogSumExps,
} from './finish.js';
import {
  createOutputSums,
  outputSumTechniques,
  type BlockProducts,
  type BlockValues,
} from './output-sums.js';
import { createRowSums, rowSumTechniques } from './row-sums.js';
import type { RunningMaximum } from './running-maximum.js';
import type { BlockWeights, ExponentScale } from './weights.js';

/** A sink's contribution to the row sums of a tile, and the maxima for the LSEs. */
interface TileSink {
  /** The row sums with the sink, by the techniques that decide them. */
  readonly sums: (
    maxima: Float64Array,
    sums: Float64Array,
    sink: number,
    emulated: EmulatedTechniques,
  ) => Float64Array;
  /** The maxima unchanged, except that rows without keys have the sink's: as the kernel computes it, or in fp64. */
  readonly maxima: (maxima: Float64Array, sink: number, isEmulated: boolean) => Float64Array;
}

/** The fp32 sum of two numbers at the nearest fp32 numbers, plus their differences from these. */
function emulatedSum(a: number, b: number): number {
  const [x, y] = [Math.fround(a), Math.fround(b)];
  return Math.fround(x + y) + (a - x + (b - y));
}

/**
 * A recipe's sink: its weight is 2^(sink·log2 e − m·c + offset). Among the techniques, `scale-subtract` decides the
 * exponent, `exp2-hardware` the weight, `row-sum` the sum with the others, and `normalise` the maximum of rows without keys.
 */
function createTileSink(recipe: Recipe, { exact, offset }: ExponentScale): TileSink {
  const { exponential } = recipe;
  const { withSink } = recipeSteps(recipe);
  const exp2 = exp2Units[exponential.unit];

  function weight(maximum: number, sink: number, emulated: EmulatedTechniques): number {
    const isEmulated = emulated.has('scale-subtract');
    const fp32 = Math.fround(maximum);
    if (isEmulated && emulated.has('exp2-hardware') && fp32 === maximum)
      return withSink(maximum, 0, sink).sum;
    const exponent = isEmulated
      ? sinkExponent(recipe, fp32, sink) - (maximum - fp32) * exact
      : sink * Math.LOG2E - maximum * exact + offset;
    if (!emulated.has('exp2-hardware')) return 2 ** exponent;
    const nearest = Math.fround(exponent);
    return exp2(nearest) * 2 ** (exponent - nearest);
  }

  return {
    sums: (maxima, sums, sink, emulated) =>
      sums.map((sum, row) => {
        if (sink === -Infinity) return sum;
        if (maxima[row] === -Infinity) return 2 ** offset;
        const ofSink = weight(maxima[row], sink, emulated);
        return emulated.has('row-sum') ? emulatedSum(sum, ofSink) : sum + ofSink;
      }),
    maxima: (maxima, sink, isEmulated) =>
      sink === -Infinity
        ? maxima
        : maxima.map((maximum) => {
            if (maximum !== -Infinity) return maximum;
            return isEmulated ? withSink(maximum, 0, sink).maximum : (sink * Math.LOG2E) / exact;
          }),
  };
}

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

/** Arrays of numbers, each made once for its key. */
class SharedNumbers {
  readonly #made = new Map<string, Float64Array>();

  once(key: string, make: () => Float64Array): Float64Array {
    const value = this.#made.get(key) ?? make();
    this.#made.set(key, value);
    return value;
  }
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
  const logSumExps = { emulated: emulatedLogSumExp(recipe), exact: exactLogSumExp(scale) };
  const sink = createTileSink(recipe, scale);
  let rows = 0;

  /** The row sums with the sink, by group of sums. */
  const finalSums = (maxima: Float64Array, logit: number): readonly Float64Array[] =>
    rowSums.map((state, i) => {
      const techniques = new Set([...emulated, ...ofSums.groups[i].emulated]);
      return sink.sums(maxima, state.totals(), logit, techniques);
    });

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
      const outs = new SharedNumbers();
      const logarithms = new SharedNumbers();
      const finals = finalSums(maxima, logit);
      return runs.map((run, i) => {
        const [choice, sum, output] = [chosen[i], ofSums.groupOf[i], ofOutputs.groupOf[i]];
        const finish = choice.has('normalise') ? 'emulated' : 'exact';
        const lse = logarithms.once(`${sum} ${finish}`, () => {
          const withSink = sink.maxima(maxima, logit, finish === 'emulated');
          return rowLogSumExps(withSink, finals[sum], rows, logSumExps[finish]);
        });
        const unrounded = outs.once(`${output} ${sum} ${finish}`, () => {
          const reciprocal = finish === 'emulated' ? recipe.finish.reciprocal : null;
          const size = { rows, columns, vDim };
          return normalisedOutput(outputSums[output].sums, finals[sum], size, reciprocal);
        });
        const out = choice.has('output-round')
          ? roundedOutput(unrounded, recipe.outFormat)
          : unrounded;
        return { run, out, lse, rowSums: finals[sum] };
      });
    },
  };
}
