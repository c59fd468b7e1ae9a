import { decodeTensor } from '../../../src/formats/index.js';
import {
  broadcastStrides,
  problemShape,
  type Problem,
  type ProblemShape,
} from '../../../src/problem/index.js';

/** Attention by its definition, in fp64. */
export interface DefinedAttention {
  /** [batch, heads, queries, vDim] */
  readonly out: Float64Array;
  /** [batch, heads, queries] */
  readonly lse: Float64Array;
  /** [batch, heads, queries]: the keys that each row sees. */
  readonly visible: readonly (readonly number[])[];
}

/** One pair of a query and a key, in the numbers of their sequence. */
interface Pair {
  readonly sequence: number;
  readonly head: number;
  readonly query: number;
  readonly key: number;
  readonly queries: number;
  readonly keys: number;
}

/** An element of a tensor that is broadcast to [batch, heads, queries, keys]. */
function elementOf(
  { shape, data }: { readonly shape: readonly number[]; readonly data: ArrayLike<number> },
  { sequence, head, query, key }: Pair,
): number {
  const strides = broadcastStrides(shape);
  return data[
    sequence * strides.batch + head * strides.head + query * strides.query + key * strides.key
  ];
}

/** Whether a query sees a key: every mask as a condition on the pair, none as ranges. */
function sees(problem: Problem, pair: Pair, bias: number): boolean {
  const { causal, window, mask, prefix = 0, segments, blockMask } = problem;
  const { sequence, head, query, key, queries, keys } = pair;
  const behind = query + keys - queries - key;
  const isInDiagonal =
    (!causal || behind >= 0) &&
    (window === null ||
      ((window.left < 0 || behind <= window.left) &&
        (window.right < 0 || -behind <= window.right)));
  if (!isInDiagonal && key >= prefix) return false;
  if (mask !== undefined && elementOf(mask, pair) === 0) return false;
  if (bias === -Infinity) return false;
  if (segments !== undefined) {
    const at = (tensor: typeof segments.queries, length: number, i: number): number =>
      tensor.data[(tensor.shape.length === 2 ? sequence * length : 0) + i];
    if (at(segments.queries, queries, query) !== at(segments.keys, keys, key)) return false;
  }
  if (blockMask === undefined) return true;
  const { counts, indices, blockQueries, blockKeys } = blockMask;
  const [batches, heads, rows] = [1, 1, ...counts.shape].slice(-3);
  const capacity = indices.shape[indices.shape.length - 1];
  const block =
    ((batches === 1 ? 0 : sequence) * heads + (heads === 1 ? 0 : head)) * rows +
    Math.floor(query / blockQueries);
  const seen = indices.data.subarray(block * capacity, block * capacity + counts.data[block]);
  return seen.includes(Math.floor(key / blockKeys));
}

/** The pairs of a row with all keys of its sequence, and where these are. */
function pairsOf(
  problem: Problem,
  { heads, queries, keys }: ProblemShape,
  head: number,
  row: number,
): { readonly pairs: readonly Pair[]; readonly firstKey: number } {
  const { sequences, rows } = problem;
  const original = rows === undefined ? row : rows.queries[head * queries + row];
  const whole = {
    sequence: Math.floor(head / heads),
    query: original,
    queries: rows?.of ?? queries,
    keys,
    firstKey: 0,
  };
  const index = (sequences ?? []).findIndex(
    ({ firstQuery, queries: own }) => original >= firstQuery && original < firstQuery + own,
  );
  const own = sequences?.[index];
  const place =
    own === undefined
      ? whole
      : {
          sequence: index,
          query: original - own.firstQuery,
          queries: own.queries,
          keys: own.keys,
          firstKey: own.firstKey,
        };
  return {
    pairs: Array.from({ length: place.keys }, (_, key) => ({ ...place, head: head % heads, key })),
    firstKey: place.firstKey,
  };
}

/**
 * Attention by its definition, pair by pair in fp64: the features of a problem read from their members, without the
 * masks, places and laws of src/problem.
 */
export function definedAttention(problem: Problem): DefinedAttention {
  const shape = problemShape(problem);
  const { batch, heads, kvHeads, groupSize, queries, keys, qkDim, vDim } = shape;
  const [q, k, v] = [problem.q, problem.k, problem.v].map((tensor) => decodeTensor(tensor));
  const bias =
    problem.bias === undefined
      ? null
      : { shape: problem.bias.shape, data: decodeTensor(problem.bias) };
  const slopes = problem.alibiSlopes === undefined ? null : decodeTensor(problem.alibiSlopes);
  const slopesOf = problem.alibiSlopes?.shape.length === 2 ? heads : 0;
  const sinks = problem.sink === undefined ? null : decodeTensor(problem.sink.logits);
  const out = new Float64Array(batch * heads * queries * vDim);
  const lse = new Float64Array(batch * heads * queries).fill(-Infinity);
  const visible: number[][] = [];
  for (let head = 0; head < batch * heads; head++) {
    const kv = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
    for (let row = 0; row < queries; row++) {
      const at = head * queries + row;
      const { pairs, firstKey } = pairsOf(problem, shape, head, row);
      const seen = pairs.filter((pair) =>
        sees(problem, pair, bias === null ? 0 : elementOf(bias, pair)),
      );
      visible.push(seen.map(({ key }) => firstKey + key));
      const scores = seen.map((pair) => {
        let product = 0;
        for (let t = 0; t < qkDim; t++)
          product += q[at * qkDim + t] * k[(kv * keys + firstKey + pair.key) * qkDim + t];
        const { softcap, scale } = problem;
        const score = product * scale;
        const capped = softcap === null ? score : softcap * Math.tanh(score / softcap);
        const slope = slopes === null ? 0 : slopes[pair.sequence * slopesOf + pair.head];
        const distance = Math.abs(pair.query + pair.keys - pair.queries - pair.key);
        return capped + (bias === null ? 0 : elementOf(bias, pair)) - slope * distance;
      });
      const sink = sinks === null ? -Infinity : sinks[head % heads];
      const largest = Math.max(sink, ...scores);
      const weights = scores.map((score) => Math.exp(score - largest));
      const ofKeys = weights.reduce((sum, weight) => sum + weight, 0);
      const sum = ofKeys + (sink === -Infinity ? 0 : Math.exp(sink - largest));
      const logarithm = Math.log(problem.sink?.inLse === false ? ofKeys : sum);
      lse[at] = largest === -Infinity ? -Infinity : largest + logarithm;
      seen.forEach((pair, j) => {
        const { dropout } = problem;
        const factor =
          dropout === undefined
            ? 1
            : (elementOf(dropout.kept, pair) === 0 ? 0 : 1) / (1 - dropout.probability);
        for (let c = 0; c < vDim; c++)
          out[at * vDim + c] +=
            ((factor * weights[j]) / sum) * v[(kv * keys + firstKey + pair.key) * vDim + c];
      });
    }
  }
  return { out, lse, visible };
}
