import { decodeTensor, formats, round } from '../../src/formats/index.js';
import type { Problem, ProblemShape } from '../../src/problem/index.js';

/** The mean of K over the keys, and the keys less it. */
export interface SmoothedKeys {
  /** [batch × kv heads × dim], in K's format. */
  readonly mean: Float64Array;
  /** [batch × kv heads × keys × dim], in K's format. */
  readonly keys: Float64Array;
}

/**
 * K less its mean over the keys: the exact mean is rounded to K's format, and every difference to fp32 and to K's format. All keys
 * of packed sequences have one mean. Source: sageattention 1.0.6, core.py (`k.mean`, `k -= km`).
 */
export function smoothKeys({ k }: Problem, shape: ProblemShape): SmoothedKeys {
  const { batch, kvHeads, keys: count, qkDim } = shape;
  const format = formats[k.format];
  const values = decodeTensor(k);
  const heads = batch * kvHeads;
  const mean = new Float64Array(heads * qkDim);
  const keys = new Float64Array(values.length);
  for (let head = 0; head < heads; head++) {
    const first = head * count * qkDim;
    const sums = new Float64Array(qkDim);
    // Row by row, as the keys lie in memory: each column's sum is in the order of the keys all the same.
    for (let j = 0, at = first; j < count; j++)
      for (let t = 0; t < qkDim; t++, at++) sums[t] += values[at];
    const ofHead = mean.subarray(head * qkDim, (head + 1) * qkDim);
    sums.forEach((sum, t) => (ofHead[t] = count === 0 ? 0 : round(format, sum / count)));
    for (let j = 0, at = first; j < count; j++)
      for (let t = 0; t < qkDim; t++, at++)
        keys[at] = round(format, Math.fround(values[at] - ofHead[t]));
  }
  return { mean, keys };
}
