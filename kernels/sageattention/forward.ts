import {
  addFloat32,
  bitsOfFloat32,
  float32Of,
  fusedMultiplyAddFloat32,
  multiplyFloat32,
  subtractFloat32,
} from '../../src/arith/index.js';
import {
  decodeToFloat64,
  formats,
  multiplyByScales,
  round,
  type Tensor,
} from '../../src/formats/index.js';
import { divideByReciprocal, exp2ApproxFtz, lg2ApproxFtz } from '../../src/hardware/index.js';
import type { Problem, ProblemShape } from '../../src/problem/index.js';
import { rowSumLaws } from '../online-softmax/row-sums.js';
import { halfNumbers, halfSums, type HalfNumbers } from './half-sums.js';

/** Queries and keys that a thread block works on at a time. */
export const tileQueries = 128;
export const tileKeys = 64;
/** P·V on tensor cores of sm_80 and later: 16 products a sum. */
export const halfArithmetic = { productsPerSum: 16, alignedFractionBits: 25 };

const exp2 = (x: number): number => float32Of(exp2ApproxFtz(bitsOfFloat32(x)));
const log2 = (x: number): number => float32Of(lg2ApproxFtz(bitsOfFloat32(x)));
const divide = (a: number, b: number): number =>
  divideByReciprocal(a, b, { isFull: true, flushes: false });

/** The factor of each row of a tensor, as its first element has it. */
function rowFactors(tensor: Tensor): Float64Array {
  const dim = tensor.shape.at(-1) ?? 0;
  const rows = dim === 0 ? 0 : tensor.data.length / dim;
  const one = new Float64Array(1);
  return Float64Array.from({ length: rows }, (_, row) => {
    one[0] = 1;
    multiplyByScales(tensor, one, row * dim, row * dim + 1);
    return one[0];
  });
}

/** Numbers of a tensor without its factors. */
const elementsOf = ({ data, format }: Tensor): Float64Array =>
  decodeToFloat64(data, formats[format]);

/** A head's operands. */
interface HeadOperands {
  readonly q: Float64Array;
  readonly k: Float64Array;
  readonly queryFactors: Float64Array;
  readonly keyFactors: Float64Array;
  /** V of each tile of keys, zeros behind the last key. */
  readonly tiles: readonly HalfNumbers[];
}

/** Sums of one row, a tile of keys after the other. */
interface RowState {
  maximum: number;
  sum: number;
  readonly out: Float64Array;
}

const { quad } = rowSumLaws;

/** The sum of a tile's weights as four threads have them. */
function tileSum(weights: Float64Array): number {
  const threads = quad
    .columnsOfThreads(tileKeys)
    .map((columns) =>
      columns.slice(1).reduce((sum, at) => addFloat32(sum, weights[at]), weights[columns[0]]),
    );
  return quad.total(threads);
}

/** Adds a tile of keys to a row's sums. */
function addTile(
  state: RowState,
  { scores, factor }: { readonly scores: Float64Array; readonly factor: number },
  values: HalfNumbers,
  vDim: number,
): void {
  let maximum = state.maximum;
  for (const s of scores) maximum = Math.max(maximum, multiplyFloat32(s, factor));
  const weights = scores.map((s) => exp2(fusedMultiplyAddFloat32(factor, s, -maximum)));
  const alpha = exp2(subtractFloat32(state.maximum, maximum));
  state.sum = fusedMultiplyAddFloat32(state.sum, alpha, tileSum(weights));
  const halves = halfNumbers(weights.map((p) => round(formats.fp16, p)));
  const sumOf = halfSums(halfArithmetic, tileKeys);
  for (let c = 0; c < vDim; c++)
    state.out[c] = fusedMultiplyAddFloat32(state.out[c], alpha, sumOf(halves, 0, values, vDim, c));
  state.maximum = maximum;
}

/** Results of a row before the output is rounded. */
interface SageRow {
  readonly out: Float64Array;
  readonly lse: number;
}

function rowOf(head: HeadOperands, row: number, qkDim: number, vDim: number): SageRow {
  const state: RowState = { maximum: -Infinity, sum: 1, out: new Float64Array(vDim) };
  const { q, k, queryFactors, keyFactors } = head;
  const keys = keyFactors.length;
  head.tiles.forEach((values, tile) => {
    const first = tile * tileKeys;
    const scores = Float64Array.from({ length: tileKeys }, (_, j) => {
      if (first + j >= keys) return 0;
      let dot = 0;
      for (let t = 0; t < qkDim; t++) dot += q[row * qkDim + t] * k[(first + j) * qkDim + t];
      return multiplyFloat32(dot, queryFactors[row]);
    });
    addTile(state, { scores, factor: keyFactors[first] }, values, vDim);
  });
  const { maximum, sum, out } = state;
  return {
    out: out.map((x) => divide(x, sum)),
    lse: multiplyFloat32(addFloat32(maximum, log2(sum)), Math.fround(Math.LN2)),
  };
}

/** V of a head in tiles of 64 keys. */
function valueTiles(values: Float64Array, keys: number, vDim: number): HalfNumbers[] {
  return Array.from({ length: Math.ceil(keys / tileKeys) }, (_, tile) => {
    const padded = new Float64Array(tileKeys * vDim);
    const first = tile * tileKeys * vDim;
    padded.set(values.subarray(first, Math.min(keys * vDim, first + tileKeys * vDim)));
    return halfNumbers(padded);
  });
}

/**
 * SageAttention 1's forward on Q and K in int8 with a factor for each 128 rows of Q and 64 of K, V in fp16: scores in fp32 of exact
 * integer sums, an online softmax from the first tile to the last, P rounded to fp16, P·V of a tile in fp16, added in fp32. Keys
 * behind the last count as scores of 0 in the row sum. The LSE, which the kernel does not give, is that of its sums.
 *
 * @returns a function of a head, counted over [batch, heads], that gives the rows [first, first + count) of it
 */
export function sageForward(
  { q, k, v }: Problem,
  { heads, kvHeads, groupSize, queries, keys, qkDim, vDim }: ProblemShape,
): (head: number, first: number, count: number) => SageRow[] {
  const [queryFactors, keyFactors] = [rowFactors(q), rowFactors(k)];
  const [qs, ks, vs] = [q, k, v].map(elementsOf);
  const known = new Map<number, HalfNumbers[]>();
  return (head, first, count) => {
    const kv = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
    const tiles =
      known.get(kv) ??
      valueTiles(vs.subarray(kv * keys * vDim, (kv + 1) * keys * vDim), keys, vDim);
    known.set(kv, tiles);
    const operands: HeadOperands = {
      q: qs.subarray(head * queries * qkDim, (head + 1) * queries * qkDim),
      k: ks.subarray(kv * keys * qkDim, (kv + 1) * keys * qkDim),
      queryFactors: queryFactors.subarray(head * queries, (head + 1) * queries),
      keyFactors: keyFactors.subarray(kv * keys, (kv + 1) * keys),
      tiles,
    };
    return Array.from({ length: count }, (_, i) => rowOf(operands, first + i, qkDim, vDim));
  };
}
