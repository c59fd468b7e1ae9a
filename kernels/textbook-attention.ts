import { decodeToFloat64, encodeFromFloat64, formats } from '../src/formats/index.js';
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
  const roundAll = (values: Float64Array): Float64Array =>
    decodeToFloat64(encodeFromFloat64(format, values), format);
  for (let head = 0; head < batch * heads; head++) {
    const kv = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
    const q = decodeRows(problem.q, head * queries, queries, qkDim);
    const k = roundAll(decodeRows(problem.k, kv * keys, keys, qkDim).map((x) => x * problem.scale));
    const v = decodeRows(problem.v, kv * keys, keys, vDim);
    for (let i = 0; i < queries; i++) {
      const { begin, end } = visibleKeys(problem, shape, i);
      const dots = new Float64Array(end - begin);
      for (let j = begin; j < end; j++)
        dots[j - begin] = dotProduct(q, i * qkDim, k, j * qkDim, qkDim);
      let scores = roundAll(dots);
      const cap = problem.softcap;
      if (cap !== null) {
        const inner = roundAll(roundAll(scores.map((x) => x / cap)).map(Math.tanh));
        scores = roundAll(inner.map((x) => x * cap));
      }
      const largest = scores.reduce((a, b) => (b > a ? b : a), -Infinity);
      const exponentials = scores.map((score) => Math.exp(score - largest));
      const total = exponentials.reduce((a, b) => a + b, 0);
      const weights = roundAll(exponentials.map((x) => x / total));
      const row = new Float64Array(vDim);
      addWeightedRows(row, weights, v, begin);
      out.set(roundAll(row), (head * queries + i) * vDim);
    }
  }
  return out;
}

/** row += Σ_j weights[j] · values[first + j], four rows of values at a time. */
function addWeightedRows(
  row: Float64Array,
  weights: Float64Array,
  values: Float64Array,
  first: number,
): void {
  const dim = row.length;
  let j = 0;
  for (; j + 3 < weights.length; j += 4) {
    const [w0, w1, w2, w3] = [weights[j]!, weights[j + 1]!, weights[j + 2]!, weights[j + 3]!];
    const at = (first + j) * dim;
    for (let c = 0; c < dim; c++)
      row[c]! +=
        w0 * values[at + c]! +
        w1 * values[at + dim + c]! +
        (w2 * values[at + 2 * dim + c]! + w3 * values[at + 3 * dim + c]!);
  }
  for (; j < weights.length; j++)
    for (let c = 0; c < dim; c++) row[c]! += weights[j]! * values[(first + j) * dim + c]!;
}
