import type { Recipe } from '../recipe.js';
import { recipeSteps, sinkExponent } from '../steps.js';
import { exp2Units } from '../units.js';
import type { EmulatedTechniques } from '../../techniques.js';
import type { ExponentScale } from './weights.js';

/** A sink's contribution to the row sums of a tile, and the maxima for the LSEs. */
export interface TileSink {
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
export function createTileSink(recipe: Recipe, { exact, offset }: ExponentScale): TileSink {
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
