import type { EmulatedNames } from '../techniques.js';
import { addScaledFloat32, expFloat32, logSumExpFloat32 } from './operations.js';
import {
  carried,
  carriedExponential,
  type RowExponents,
  type RowOperands,
} from './attributed-scores.js';

const { fround } = Math;

/** A row's exponentials p, and the sink's, 0 for none. */
export interface RowExponentials {
  /** [keys seen] */
  readonly values: Float64Array;
  readonly ofSink: number;
}

/** The exponentials of a row, by the technique `exp`. */
export function rowExponentials(
  { exponents, ofSink }: RowExponents,
  emulated: EmulatedNames,
): RowExponentials {
  const exponential = (x: number): number =>
    emulated.has('exp')
      ? carriedExponential(expFloat32(fround(x)), x === fround(x) ? 0 : x - fround(x))
      : Math.exp(x);
  return { values: exponents.map(exponential), ofSink: exponential(ofSink) };
}

/** The row sum l of exponentials, the sink's last, by the technique `row-sum`. */
export function rowSum({ values, ofSink }: RowExponentials, emulated: EmulatedNames): number {
  if (!emulated.has('row-sum')) return values.reduce((sum, p) => sum + p, 0) + ofSink;
  let [sum, difference] = [0, 0];
  const add = (p: number): void => {
    sum = fround(sum + fround(p));
    if (p !== fround(p)) difference += p - fround(p);
  };
  values.forEach(add);
  add(ofSink);
  return carried(sum, difference);
}

/** A row's weights w = p / l, some of them dropped, and its LSE, natural logarithm. */
interface RowFinish {
  readonly weights: Float64Array;
  readonly lse: number;
}

/**
 * The finish of a row, by the technique `normalise`.
 * @param dropout which weights are kept, and the share that they are divided by; null for none
 */
export function rowFinish(
  exponentials: Float64Array,
  { maximum, sum }: { readonly maximum: number; readonly sum: number },
  dropout: { readonly kept: Uint8Array; readonly share: number } | null,
  emulated: EmulatedNames,
): RowFinish {
  const isEmulated = emulated.has('normalise');
  const { weights, lse } = isEmulated
    ? roundedFinish(exponentials, maximum, sum)
    : { weights: exponentials.map((p) => p / sum), lse: maximum + Math.log(sum) };
  if (dropout === null) return { weights, lse };
  const { kept, share } = dropout;
  const factor = fround(1 / share);
  const upscaled = (w: number): number =>
    isEmulated ? carried(fround(fround(w) * factor), (w - fround(w)) * factor) : w / share;
  return { weights: weights.map((w, j) => (kept[j] === 0 ? w * 0 : upscaled(w))), lse };
}

/** Quotients and LSE in fp32, at the nearest operands and carried over to the actual ones. */
function roundedFinish(exponentials: Float64Array, maximum: number, sum: number): RowFinish {
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

/** Σ_j weights[j] · values[keys[j]] for rows of values, in fp64, four rows at a time. */
function weightedSum(
  weights: Float64Array,
  values: Float64Array,
  keys: Int32Array,
  vDim: number,
): Float64Array {
  const sums = new Float64Array(vDim);
  let j = 0;
  for (; j + 3 < weights.length; j += 4) {
    const [w0, w1, w2, w3] = [weights[j], weights[j + 1], weights[j + 2], weights[j + 3]];
    const [v0, v1] = [keys[j] * vDim, keys[j + 1] * vDim];
    const [v2, v3] = [keys[j + 2] * vDim, keys[j + 3] * vDim];
    for (let c = 0; c < vDim; c++)
      sums[c] +=
        w0 * values[v0 + c] + w1 * values[v1 + c] + (w2 * values[v2 + c] + w3 * values[v3 + c]);
  }
  for (; j < weights.length; j++)
    for (let c = 0; c < vDim; c++) sums[c] += weights[j] * values[keys[j] * vDim + c];
  return sums;
}

/** The output of a row [vDim] from its weights, by `input-round` and `pv-accumulate`. */
export function rowOutput(
  weights: Float64Array,
  { v, keys, vDim }: RowOperands,
  emulated: EmulatedNames,
): Float64Array {
  const values = emulated.has('input-round') ? v.nearest : v.values;
  if (!emulated.has('pv-accumulate')) return weightedSum(weights, values, keys, vDim);
  const out = rounded(weights, v.nearest, keys, vDim);
  if (values === v.nearest) return out;
  const differences = values.map((value, i) => value - v.nearest[i]);
  const carry = weightedSum(weights, differences, keys, vDim);
  return out.map((sum, c) => carried(sum, carry[c]));
}

/** The products and sums in fp32, at the fp32 numbers nearest to the weights, carried over to these. */
function rounded(
  weights: Float64Array,
  values: Float64Array,
  keys: Int32Array,
  vDim: number,
): Float64Array {
  const sums = new Float32Array(vDim);
  const differences = new Float64Array(vDim);
  for (let j = 0; j < weights.length; j++) {
    const nearest = fround(weights[j]);
    const at = keys[j] * vDim;
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
