import { decodeToFloat64, encodeFromFloat64, formats, problemShape, visibleKeys } from 'flashproof';

const values = ({ format, data }) => decodeToFloat64(data, formats[format]);

/** softmax(scale·Q·Kᵀ)·V row by row in fp64, rounded to Q's format at the end; no LSE. */
export function attention(problem) {
  const shape = problemShape(problem);
  const { batch, heads, kvHeads, groupSize, queries, keys, qkDim, vDim } = shape;
  const [q, k, v] = [problem.q, problem.k, problem.v].map(values);
  const out = new Float64Array(batch * heads * queries * vDim);
  for (let row = 0; row < batch * heads * queries; row++) {
    const head = Math.floor(row / queries);
    const kv = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
    const { begin, end } = visibleKeys(problem, shape, row % queries);
    const scores = [];
    for (let j = begin; j < end; j++) {
      let dot = 0;
      for (let t = 0; t < qkDim; t++) dot += q[row * qkDim + t] * k[(kv * keys + j) * qkDim + t];
      scores.push(dot * problem.scale);
    }
    const maximum = Math.max(...scores);
    // Scores may all be −∞; the difference of two infinities would be NaN.
    const weights = scores.map((s) => Math.exp(s - (maximum === -Infinity ? 0 : maximum)));
    const sum = weights.reduce((a, b) => a + b, 0);
    for (let c = 0; c < vDim; c++) {
      let total = 0;
      weights.forEach((weight, j) => (total += weight * v[(kv * keys + begin + j) * vDim + c]));
      // A query without keys attends to nothing.
      out[row * vDim + c] = sum === 0 ? total : total / sum;
    }
  }
  const { format } = problem.q;
  const data = encodeFromFloat64(formats[format], out);
  return { out: { format, shape: [batch, heads, queries, vDim], data } };
}
