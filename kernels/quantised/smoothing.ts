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
  for (let head = 0; head < heads; head++)
    for (let t = 0; t < qkDim; t++) {
      let sum = 0;
      for (let j = 0; j < count; j++) sum += values[(head * count + j) * qkDim + t];
      mean[head * qkDim + t] = count === 0 ? 0 : round(format, sum / count);
    }
  const keys = values.map((x, at) => {
    const head = Math.floor(at / (count * qkDim));
    return round(format, Math.fround(x - mean[head * qkDim + (at % qkDim)]));
  });
  return { mean, keys };
}
