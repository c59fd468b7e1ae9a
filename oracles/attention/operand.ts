import { decodeTensor, tensorPrecision } from '../../src/formats/index.js';
import type { KeyRange, Problem, ProblemShape, Tensor } from '../../src/problem/index.js';

const zeroBit = 32767;

/** Keys per tile of the fp64 level; operand statistics are kept per tile of this many rows. */
export const tileRows = 64;

/**
 * One head of Q, K or V decoded to fp64, with infinities and NaNs replaced by 0 and marked, and what
 * the error analysis needs to know of each tile of rows.
 */
export interface Operand {
  /** [rows × dim] */
  readonly values: Float64Array;
  readonly rows: number;
  readonly dim: number;
  /** Per row: 1 when it held an infinity or a NaN. */
  readonly special: Uint8Array;
  readonly anySpecial: boolean;
  /** Per row: an upper bound on the Euclidean norm. */
  readonly norm: Float64Array;
  /** Per tile: the largest norm of its rows. */
  readonly tileNorm: Float64Array;
  /** Per row: the largest magnitude. */
  readonly largest: Float64Array;
  /** Per row: every element is a multiple of 2^lowestBit (+∞ for a row of zeros). */
  readonly lowestBit: Float64Array;
  /** Per element: it is a multiple of 2^bit (32767 for a zero). */
  readonly bit: Int16Array;
  /** Per tile: the largest magnitude and the least lowestBit of its rows. */
  readonly tileLargest: Float64Array;
  /** Per column: the largest magnitude. */
  readonly columnLargest: Float64Array;
  readonly tileLowestBit: Float64Array;
  /** The element as the tensor has it, an infinity or a NaN included. */
  raw(row: number, column: number): number;
}

/** Decodes rows [0, rows) × dim starting at element `first` of a tensor. */
export function readOperand(tensor: Tensor, first: number, rows: number, dim: number): Operand {
  const values = decodeTensor(tensor, first, first + rows * dim);
  const precision = tensorPrecision(tensor);
  const tiles = Math.ceil(rows / tileRows);
  const special = new Uint8Array(rows);
  const norm = new Float64Array(rows);
  const largest = new Float64Array(rows);
  const lowestBit = new Float64Array(rows);
  const tileNorm = new Float64Array(tiles);
  const tileLargest = new Float64Array(tiles);
  const tileLowestBit = new Float64Array(tiles).fill(Infinity);
  const columnLargest = new Float64Array(dim);
  const words = new Uint32Array(values.buffer);
  const bit = new Int16Array(rows * dim).fill(zeroBit);
  const specials = new Map<number, number>();
  for (let row = 0; row < rows; row++) {
    let sumOfSquares = 0;
    let magnitude = 0;
    let least: number = zeroBit;
    for (let at = row * dim; at < (row + 1) * dim; at++) {
      const x = values[at];
      if (x === 0) continue;
      const exponentField = (words[2 * at + 1] >>> 20) & 0x7ff;
      if (exponentField === 0x7ff) {
        special[row] = 1;
        specials.set(at, x);
        values[at] = 0;
        continue;
      }
      sumOfSquares += x * x;
      const size = Math.abs(x);
      if (size > magnitude) magnitude = size;
      if (size > columnLargest[at - row * dim]) columnLargest[at - row * dim] = size;
      bit[at] = exponentField === 0 ? -1074 : exponentField - 1022 - precision;
      least = Math.min(least, bit[at]);
    }
    // The sum of dim squares and its root, each rounded up by far more than it can be off.
    norm[row] = Math.sqrt(sumOfSquares) * (1 + 2 ** -40) + dim * 2 ** -530;
    largest[row] = magnitude;
    lowestBit[row] = least === zeroBit ? Infinity : least;
    const tile = Math.floor(row / tileRows);
    tileNorm[tile] = Math.max(tileNorm[tile], norm[row]);
    tileLargest[tile] = Math.max(tileLargest[tile], magnitude);
    tileLowestBit[tile] = Math.min(tileLowestBit[tile], lowestBit[row]);
  }
  return {
    values,
    rows,
    dim,
    special,
    anySpecial: specials.size > 0,
    norm,
    tileNorm,
    largest,
    lowestBit,
    bit,
    tileLargest,
    columnLargest,
    tileLowestBit,
    raw: (row, column) => specials.get(row * dim + column) ?? values[row * dim + column],
  };
}

/** The three operands of one head, decoded. */
export interface HeadOperands {
  readonly query: Operand;
  readonly keys: Operand;
  readonly values: Operand;
}

/** Up to 64 query rows of one head, and the keys that each of them sees. */
export interface QueryBlock {
  readonly operands: HeadOperands;
  readonly firstRow: number;
  /** Of each row: see `Mask`. */
  readonly ranges: readonly (readonly KeyRange[])[];
}

/** Decodes head by head, keeping K and V while query heads of one group follow each other. */
export function* headOperands(problem: Problem, shape: ProblemShape): Generator<HeadOperands> {
  const { batch, heads, kvHeads, groupSize, queries, keys, qkDim, vDim } = shape;
  for (let b = 0; b < batch; b++) {
    let kvHead = -1;
    let key: Operand | undefined;
    let value: Operand | undefined;
    for (let h = 0; h < heads; h++) {
      if (Math.floor(h / groupSize) !== kvHead) {
        kvHead = Math.floor(h / groupSize);
        const kv = b * kvHeads + kvHead;
        key = readOperand(problem.k, kv * keys * qkDim, keys, qkDim);
        value = readOperand(problem.v, kv * keys * vDim, keys, vDim);
      }
      const first = (b * heads + h) * queries * qkDim;
      const query = readOperand(problem.q, first, queries, qkDim);
      yield { query, keys: key!, values: value! };
    }
  }
}

/** Unit roundoff of fp64. */
const u = 2 ** -53;

/** n·u / (1 − n·u): the relative error of n roundings to nearest (Higham, Lemma 3.1). */
export function gamma(n: number): number {
  return (n * u) / (1 - n * u);
}

/**
 * Whether the fp64 dot products of one query with one tile of keys are exact: every product is a
 * multiple of 2^(qBit + kBit), so every partial sum is an integer of at most 53 bits times that.
 */
export function isExactDot(query: Operand, row: number, keys: Operand, tile: number): boolean {
  const unit = query.lowestBit[row] + keys.tileLowestBit[tile];
  if (unit === Infinity) return true;
  const total = keys.dim * query.largest[row] * keys.tileLargest[tile];
  return unit >= -1074 && total * (1 + 2 ** -50) <= 2 ** (unit + 53) && Number.isFinite(total);
}

/**
 * A bound on the error of the fp64 dot products of one query with one tile of keys. P = ‖q‖·max‖k‖
 * bounds every partial sum. Terms that are multiples of ulp(P) add up exactly; a term with lower
 * bits causes one rounding each time the partial sum then reaches a binade it had not reached since,
 * which together is at most ulp(P) ≤ 2^-52·P. So the error is at most their number times that, and
 * never more than γ(d)·P.
 */
export function dotError(query: Operand, row: number, keys: Operand, tile: number): number {
  if (isExactDot(query, row, keys, tile)) return 0;
  const { dim } = query;
  const largest = query.norm[row] * keys.tileNorm[tile];
  const underflow = dim * 2 ** -1073;
  if (!(largest < 2 ** 1000)) return Infinity;
  const ulpExponent = Math.floor(Math.log2(largest * (1 + 2 ** -40))) - 51;
  const threshold = ulpExponent - keys.tileLowestBit[tile];
  let inexactTerms = 0;
  for (let at = row * dim; at < (row + 1) * dim; at++)
    if (query.bit[at] < threshold) inexactTerms++;
  return Math.min(inexactTerms * 2 ** -52, gamma(dim)) * largest + underflow;
}
