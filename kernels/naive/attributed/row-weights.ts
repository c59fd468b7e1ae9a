import type { EmulatedNames } from '../../attributed-kernel.js';
import { expFloat32, logSumExpFloat32 } from '../operations.js';
import { carried, carriedExponential } from './nearest.js';

const { fround } = Math;

/** The exponentials p of a row, by the technique `exp`. */
export function rowExponentials(exponents: Float64Array, emulated: EmulatedNames): Float64Array {
  return exponents.map((x) =>
    emulated.has('exp')
      ? carriedExponential(expFloat32(fround(x)), x === fround(x) ? 0 : x - fround(x))
      : Math.exp(x),
  );
}

/** The row sum l of exponentials, by the technique `row-sum`. */
export function rowSum(exponentials: Float64Array, emulated: EmulatedNames): number {
  if (!emulated.has('row-sum')) return exponentials.reduce((sum, p) => sum + p, 0);
  let [sum, difference] = [0, 0];
  for (const p of exponentials) {
    sum = fround(sum + fround(p));
    if (p !== fround(p)) difference += p - fround(p);
  }
  return carried(sum, difference);
}

/** A row's weights w = p / l and its LSE, natural logarithm. */
export interface RowFinish {
  readonly weights: Float64Array;
  readonly lse: number;
}

/** The finish of a row, by the technique `normalise`. */
export function rowFinish(
  exponentials: Float64Array,
  maximum: number,
  sum: number,
  emulated: EmulatedNames,
): RowFinish {
  if (!emulated.has('normalise'))
    return { weights: exponentials.map((p) => p / sum), lse: maximum + Math.log(sum) };
  const nearestSum = fround(sum);
  const isNearest = sum === nearestSum;
  const weights = exponentials.map((p) =>
    carried(
      fround(fround(p) / nearestSum),
      isNearest && p === fround(p) ? 0 : p / sum - fround(p) / nearestSum,
    ),
  );
  const difference = maximum - fround(maximum) + (isNearest ? 0 : Math.log(sum / nearestSum));
  return { weights, lse: carried(logSumExpFloat32(fround(maximum), nearestSum), difference) };
}
