import type { Problem, Tensor } from 'flashproof';

/** Keys worked on at a time. */
export const blockKeys = 32;

/** What a query has seen so far. */
export interface RowState {
  /** The largest score. */
  maximum: number;
  /** Σ exp(score − maximum). */
  sum: number;
  /** Σ exp(score − maximum)·v. */
  readonly out: Float32Array;
}

/** Makes a row's sums relative to a new maximum: `factor` is exp(old maximum − new maximum). */
export function rescale(state: RowState, factor: number): void {
  state.sum = Math.fround(state.sum * factor);
  for (let c = 0; c < state.out.length; c++) state.out[c] *= factor;
}

function elements({ format, data }: Tensor): Float32Array {
  if (format !== 'fp32') throw new Error(`this kernel takes fp32, not ${format}`);
  return data as Float32Array;
}

/** The keys that a query sees, begin to end: causal and window masks end at the last key. */
function visible(problem: Problem, query: number, queries: number, keys: number) {
  const diagonal = query + keys - queries;
  const { left, right } = problem.window ?? { left: -1, right: -1 };
  const limits = [keys];
  if (problem.causal) limits.push(diagonal + 1);
  if (right >= 0) limits.push(diagonal + right + 1);
  return { begin: left >= 0 ? Math.max(diagonal - left, 0) : 0, end: Math.min(...limits) };
}

/**
 * Attention with a running maximum, one block of keys after the other, in fp32: Q and O are
 * [batch, heads, queries, dim], K and V may have fewer heads, the LSE is [batch, heads, queries].
 */
export function flashAttention(
  problem: Problem,
  rescaleRow = rescale,
): { out: Tensor; lse: Tensor } {
  const { q, k, v } = problem;
  const [batch, heads, queries, qkDim] = q.shape as [number, number, number, number];
  const [, kvHeads, keys, vDim] = v.shape as [number, number, number, number];
  const [qData, kData, vData] = [elements(q), elements(k), elements(v)];
  const scale = Math.fround(problem.scale);
  const out = new Float32Array(batch * heads * queries * vDim);
  const lse = new Float32Array(batch * heads * queries);
  const scores = new Float32Array(blockKeys);

  for (let row = 0; row < lse.length; row++) {
    const head = Math.floor(row / queries);
    const kvHead =
      Math.floor(head / heads) * kvHeads + Math.floor(((head % heads) * kvHeads) / heads);
    const { begin, end } = visible(problem, row % queries, queries, keys);
    const state: RowState = { maximum: -Infinity, sum: 0, out: new Float32Array(vDim) };

    for (let first = begin; first < end; first += blockKeys) {
      const count = Math.min(blockKeys, end - first);
      let maximum = state.maximum;
      for (let j = 0; j < count; j++) {
        const key = (kvHead * keys + first + j) * qkDim;
        let dot = 0;
        for (let t = 0; t < qkDim; t++)
          dot = Math.fround(dot + qData[row * qkDim + t] * kData[key + t]);
        scores[j] = dot * scale;
        maximum = Math.max(maximum, scores[j]);
      }
      // Scores may all be −∞; the difference of two infinities would be NaN.
      const origin = maximum === -Infinity ? 0 : maximum;
      rescaleRow(state, Math.fround(Math.exp(state.maximum - origin)));
      state.maximum = maximum;
      for (let j = 0; j < count; j++) {
        const weight = Math.fround(Math.exp(scores[j] - origin));
        const value = (kvHead * keys + first + j) * vDim;
        state.sum = Math.fround(state.sum + weight);
        for (let c = 0; c < vDim; c++) state.out[c] += weight * vData[value + c];
      }
    }

    // A query without keys has nothing to divide by, and attends to nothing.
    const divisor = state.sum === 0 ? 1 : state.sum;
    for (let c = 0; c < vDim; c++) out[row * vDim + c] = state.out[c] / divisor;
    lse[row] = state.maximum + Math.log(state.sum);
  }
  return {
    out: { format: 'fp32', shape: [batch, heads, queries, vDim], data: out },
    lse: { format: 'fp32', shape: [batch, heads, queries], data: lse },
  };
}
