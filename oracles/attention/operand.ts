import {
  decodeFinite,
  decodeMeasured,
  decodeTensor,
  tensorPrecision,
} from '../../src/formats/index.js';
import type { Tensor } from '../../src/problem/index.js';
import { lazily } from '../../src/reuse.js';
import {
  emptyMeasures,
  lowestBit,
  measureTile,
  takeMeasures,
  tileOf,
  tileRows,
  type TileMeasures,
} from './operand-measures.js';

export { tileRows };

const zeroBit = 32767;

/** Operands of more elements are decoded tile by tile whenever they are needed: 16 MiB in fp64. */
const heldElements = 2 ** 21;

/**
 * One head of Q, K or V, with infinities and NaNs replaced by 0 and marked, and the measures of each row and
 * of each tile of rows that the error analysis needs. Elements of a long one are never held in fp64 as a
 * whole.
 */
export interface Operand {
  readonly rows: number;
  readonly dim: number;
  /** Per row: 1 when it held an infinity or a NaN. */
  readonly special: Uint8Array;
  readonly anySpecial: boolean;
  /** Per row: an upper bound on the Euclidean norm. */
  readonly norm: Float64Array;
  /** Per row: the largest magnitude. */
  readonly largest: Float64Array;
  /** Per row: every element is a multiple of 2^lowestBit (+∞ for a row of zeros). */
  readonly lowestBit: Float64Array;
  /** Per column: the largest magnitude. */
  readonly columnLargest: Float64Array;
  /** Measures of a tile, without those of others. Like `tile`, it may end the use of another tile's elements. */
  ofTile(index: number): TileMeasures;
  /** The elements of a tile, [rows × dim] with fewer rows at the end: good until another tile is asked for. */
  tile(index: number): Float64Array;
  /** The elements of a tile by column, [dim × 64], 0 beyond the rows: good as long as those of the tile. */
  columns(index: number): Float64Array;
  /** Per element of a tile: it is a multiple of 2^bit (32767 for a zero). Good as long. */
  tileBits(index: number): Int16Array;
  /** The element as the tensor has it, an infinity or a NaN included. */
  raw(row: number, column: number): number;
}

/** A row of an operand: a view, valid until another tile is asked for. */
export function operandRow(operand: Operand, row: number): Float64Array {
  const start = (row % tileRows) * operand.dim;
  return operand.tile(Math.floor(row / tileRows)).subarray(start, start + operand.dim);
}

/** The lowest bits of finite numbers: see `lowestBit`. */
function lowestBits(values: Float64Array, precision: number, bits: Int16Array): void {
  const words = new Uint32Array(values.buffer, values.byteOffset, 2 * values.length);
  for (let at = 0; at < values.length; at++)
    bits[at] = values[at] === 0 ? zeroBit : lowestBit(words[2 * at + 1], precision);
}

/** Names of the measures of all rows. */
const measureNames = [
  ...(['anySpecial', 'special', 'norm', 'largest', 'lowestBit', 'columnLargest'] as const),
] as const;

type MeasuredOperand = Pick<Operand, (typeof measureNames)[number]>;

/** Copies up to 64 rows of `dim` elements into a [dim × 64] tile, zero beyond them. */
function transpose(source: Float64Array, dim: number, target: Float64Array): void {
  const rows = source.length / dim;
  if (rows < tileRows) target.fill(0);
  for (let i = 0, at = 0; i < rows; i++)
    for (let t = i; t < dim * tileRows; t += tileRows) target[t] = source[at++];
}

/** Reads rows [0, rows) × dim starting at element `first` of a tensor. */
export function readOperand(tensor: Tensor, first: number, rows: number, dim: number): Operand {
  const precision = tensorPrecision(tensor);
  const isHeld = rows * dim <= heldElements;
  const tileSize = tileRows * dim;
  const held = new Float64Array(isHeld ? rows * dim : tileSize);
  const boundsOf = (tile: number) => [tile * tileSize, Math.min((tile + 1) * tileSize, rows * dim)];
  const placeOf = (tile: number) => {
    const [begin, end] = boundsOf(tile);
    return isHeld ? held.subarray(begin, end) : held.subarray(0, end - begin);
  };
  const decode = (begin: number, end: number, target: Float64Array) =>
    decodeTensor(tensor, first + begin, first + end, target);

  const found = emptyMeasures(rows, dim);
  let current = -1;
  /** Decodes a tile that has not been measured, and measures it. */
  const measure = (index: number): TileMeasures => {
    const [begin, end] = boundsOf(index);
    const values = placeOf(index);
    const measured = decodeMeasured(tensor, first + begin, first + end, dim, values);
    if (measured === null) {
      decode(begin, end, values);
      measureTile(values, index, dim, precision, found);
    } else takeMeasures(measured, index, dim, precision, found);
    current = index;
    const firstRow = index * tileRows;
    return (found.tiles[index] = tileOf(found, firstRow, Math.min(firstRow + tileRows, rows)));
  };
  const ofTile = (index: number) => found.tiles[index] ?? measure(index);
  // Of a long operand only who asks for measures of all rows goes through all of it.
  const measures = lazily(() => {
    for (let tile = 0; tile < found.tiles.length; tile++) ofTile(tile);
    return { ...found, anySpecial: found.special.includes(1) };
  });
  if (isHeld) measures();
  const tile = (index: number) => {
    const values = placeOf(index);
    if (isHeld || index === current) return values;
    const [begin, end] = boundsOf(index);
    if (found.tiles[index] === undefined) measure(index);
    else decodeFinite(tensor, first + begin, first + end, values);
    current = index;
    return values;
  };

  // All of those that are held, one of the others.
  let columnsOf = new Map<number, Float64Array>();
  const columns = (index: number) => {
    const known = columnsOf.get(index);
    if (known !== undefined) return known;
    const made =
      (isHeld ? undefined : columnsOf.values().next().value) ?? new Float64Array(tileSize);
    transpose(tile(index), dim, made);
    if (!isHeld) columnsOf = new Map();
    columnsOf.set(index, made);
    return made;
  };

  let bits: Int16Array | null = null;
  let bitsOf = -1;
  const tileBits = (index: number) => {
    bits ??= new Int16Array(tileSize);
    if (bitsOf !== index) lowestBits(tile(index), precision, bits);
    bitsOf = index;
    return bits;
  };

  const rawValues = new Float64Array(dim);
  let rawRow = -1;
  const raw = (row: number, column: number) => {
    if (row !== rawRow) decode(row * dim, (row + 1) * dim, rawValues);
    rawRow = row;
    return rawValues[column];
  };
  const measured = Object.fromEntries(
    measureNames.map((name) => [name, { enumerable: true, get: () => measures()[name] }]),
  );
  const operand = { rows, dim, ofTile, tile, columns, tileBits, raw };
  return Object.defineProperties(operand, measured) as typeof operand & MeasuredOperand;
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
  const { largest, lowestBit } = keys.ofTile(tile);
  const unit = query.lowestBit[row] + lowestBit;
  if (unit === Infinity) return true;
  const total = keys.dim * query.largest[row] * largest;
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
  const { norm, lowestBit } = keys.ofTile(tile);
  const largest = query.norm[row] * norm;
  const underflow = dim * 2 ** -1073;
  if (!(largest < 2 ** 1000)) return Infinity;
  const ulpExponent = Math.floor(Math.log2(largest * (1 + 2 ** -40))) - 51;
  const threshold = ulpExponent - lowestBit;
  let inexactTerms = 0;
  const bits = query.tileBits(Math.floor(row / tileRows));
  const start = (row % tileRows) * dim;
  for (let at = start; at < start + dim; at++) if (bits[at] < threshold) inexactTerms++;
  return Math.min(inexactTerms * 2 ** -52, gamma(dim)) * largest + underflow;
}
