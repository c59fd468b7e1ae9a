import type { EmulatedNames } from '../techniques.js';
import { addScaledFloat32, expFloat32, logSumExpFloat32 } from './operations.js';
import { carried, carriedExponential, type RowOperands } from './attributed-scores.js';

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
interface RowFinish {
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

/** Σ_j weights[j] · values[first + j] for rows of values, in fp64, four rows at a time. */
function weightedSum(
  weights: Float64Array,
  values: Float64Array,
  first: number,
  vDim: number,
): Float64Array {
  const sums = new Float64Array(vDim);
  let j = 0;
  for (; j + 3 < weights.length; j += 4) {
    const [w0, w1, w2, w3] = [weights[j], weights[j + 1], weights[j + 2], weights[j + 3]];
    const v0 = (first + j) * vDim;
    const [v1, v2, v3] = [v0 + vDim, v0 + 2 * vDim, v0 + 3 * vDim];
    for (let c = 0; c < vDim; c++)
      sums[c] +=
        w0 * values[v0 + c] + w1 * values[v1 + c] + (w2 * values[v2 + c] + w3 * values[v3 + c]);
  }
  for (; j < weights.length; j++)
    for (let c = 0; c < vDim; c++) sums[c] += weights[j] * values[(first + j) * vDim + c];
  return sums;
}

/** The output of a row [vDim] from its weights, by `input-round` and `pv-accumulate`. */
export function rowOutput(
  weights: Float64Array,
  { v, begin, vDim }: RowOperands,
  emulated: EmulatedNames,
): Float64Array {
  const values = emulated.has('input-round') ? v.nearest : v.values;
  if (!emulated.has('pv-accumulate')) return weightedSum(weights, values, begin, vDim);
  const out = rounded(weights, v.nearest, begin, vDim);
  if (values === v.nearest) return out;
  const differences = values.map((value, i) => value - v.nearest[i]);
  const carry = weightedSum(weights, differences, begin, vDim);
  return out.map((sum, c) => carried(sum, carry[c]));
}

/** The products and sums in fp32, at the fp32 numbers nearest to the weights, carried over to these. */
function rounded(
  weights: Float64Array,
  values: Float64Array,
  first: number,
  vDim: number,
): Float64Array {
  const sums = new Float32Array(vDim);
  const differences = new Float64Array(vDim);
  for (let j = 0; j < weights.length; j++) {
    const nearest = fround(weights[j]);
    const at = (first + j) * vDim;
    if (nearest === weights[j]) {
      addScaledFloat32(sums, nearest, values, at);
      continue;
    }
    const difference = weights[j] - nearest;
    for (let c = 0; c < vDim; c++) {
      const value = values[at + c];
      sums[c] += fround(nearest * value);
      differences[c] += difference * value;
    }
  }
  return Float64Array.from(sums, (sum, c) => carried(sum, differences[c]));
}
