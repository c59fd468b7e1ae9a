import { decodeToFloat64, formats, round } from '../src/formats/index.js';
import { visibleKeys, type Problem, type ProblemShape, type Tensor } from '../src/problem.js';

/** Four partial sums, so that additions need not wait for one another. */
function dotProduct(
  a: Float64Array,
  aStart: number,
  b: Float64Array,
  bStart: number,
  length: number,
): number {
  let [s0, s1, s2, s3] = [0, 0, 0, 0];
  let t = 0;
  for (; t + 3 < length; t += 4) {
    s0 += a[aStart + t]! * b[bStart + t]!;
    s1 += a[aStart + t + 1]! * b[bStart + t + 1]!;
    s2 += a[aStart + t + 2]! * b[bStart + t + 2]!;
    s3 += a[aStart + t + 3]! * b[bStart + t + 3]!;
  }
  for (; t < length; t++) s0 += a[aStart + t]! * b[bStart + t]!;
  return s0 + s1 + (s2 + s3);
}

/** Rows [first, first + rows) of a tensor with rows of `dim` elements, decoded. */
function decodeRows(tensor: Tensor, first: number, rows: number, dim: number): Float64Array {
  const out = new Float64Array(rows * dim);
  decodeToFloat64(tensor.data, formats[tensor.format], out, first * dim, (first + rows) * dim);
  return out;
}

/**
 * Textbook attention in the input format, as FlashAttention's tests compute their yardstick
 * (`attention_ref` without upcast and with reordered operations): every tensor is rounded to the
 * format of Q, to nearest even: K·scale, the scores, the softcapped scores, the weights, the output;
 * sums are in fp64. Returns the output's values, [batch, heads, queries, vDim].
 */
export function textbookAttention(problem: Problem, shape: ProblemShape): Float64Array {
  const { batch, heads, kvHeads, groupSize, queries, keys, qkDim, vDim } = shape;
  const format = formats[problem.q.format];
  const out = new Float64Array(batch * heads * queries * vDim);
  const scores = new Float64Array(keys);
  for (let head = 0; head < batch * heads; head++) {
    const kv = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
    const q = decodeRows(problem.q, head * queries, queries, qkDim);
    const k = decodeRows(problem.k, kv * keys, keys, qkDim).map((x) =>
      round(format, x * problem.scale),
    );
    const v = decodeRows(problem.v, kv * keys, keys, vDim);
    for (let i = 0; i < queries; i++) {
      const { begin, end } = visibleKeys(problem, shape, i);
      let largest = -Infinity;
      for (let j = begin; j < end; j++) {
        let score = round(format, dotProduct(q, i * qkDim, k, j * qkDim, qkDim));
        if (problem.softcap !== null) {
          const inner = round(format, Math.tanh(round(format, score / problem.softcap)));
          score = round(format, inner * problem.softcap);
        }
        scores[j] = score;
        if (score > largest) largest = score;
      }
      let total = 0;
      for (let j = begin; j < end; j++) total += scores[j] = Math.exp(scores[j]! - largest);
      const row = out.subarray((head * queries + i) * vDim, (head * queries + i + 1) * vDim);
      for (let j = begin; j < end; j++) {
        const weight = round(format, scores[j]! / total);
        if (weight === 0) continue;
        for (let c = 0; c < vDim; c++) row[c]! += weight * v[j * vDim + c]!;
      }
      for (let c = 0; c < vDim; c++) row[c] = round(format, row[c]!);
    }
  }
  return out;
}
