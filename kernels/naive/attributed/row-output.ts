import type { EmulatedNames } from '../../attributed-kernel.js';
import { addScaledFloat32 } from '../operations.js';
import { carried } from './nearest.js';
import type { RowOperands } from './row-scores.js';

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
  const { fround } = Math;
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
