import type { AttentionReference } from '../../../oracles/index.js';
import type { RowSelection, RowsOf } from '../../problem/index.js';
import { elementAt, type Coordinates } from '../kernel-outputs.js';
import { createRowLocator } from '../rows/index.js';
import { signedRankTest, type SignedRank } from './signed-rank.js';

/** Queries of a tile of a head, by which differences are located. */
export const comparedTile = 64;

/** The test of which of two outputs is closer to the exact one. */
export interface Closeness extends SignedRank {
  /** Number of rows that could be compared: with an exact output that is finite. */
  readonly rows: number;
  /** Number of the test's units in which the first output is closer. */
  readonly firstCloser: number;
  /**
   * Root mean square over all rows of a row's error relative to Σ p|v|, of the first output and of the second;
   * infinite where one is not finite and the exact one is.
   */
  readonly rms: readonly [first: number, second: number];
}

/** Differences of two outputs of one problem. */
export interface OutputDifference {
  readonly elements: number;
  /** Elements that are not the same number; the signs of zeros count, NaNs are all the same. */
  readonly differing: number;
  readonly rows: number;
  readonly differingRows: number;
  /** Number of tiles of 64 queries of a head, with rows that were compared, and of those in which some row differs. */
  readonly tiles: number;
  readonly differingTiles: number;
  readonly heads: number;
  /** The heads that differ, counted over [batch, heads], in ascending order. */
  readonly differingHeads: readonly number[];
  /** The first row that differs; null where none does. */
  readonly first: Coordinates | null;
  /** The largest difference of finite numbers, and where it is; null where none differs. */
  readonly largest: { readonly difference: number; readonly at: Coordinates } | null;
  readonly closeness: Closeness;
}

/** The places and sizes of the differences of two outputs. */
type Differences = Omit<OutputDifference, 'closeness'>;

function findDifferences(
  { shape }: AttentionReference,
  { selection, sequences }: Pick<ComparedRows, 'selection' | 'sequences'>,
  first: Float64Array,
  second: Float64Array,
): Differences {
  const { queries, vDim, batch, heads } = shape;
  const locator = createRowLocator({ rows: selection, sequences }, shape);
  const placeOf = <T extends Coordinates>(at: T): T =>
    locator === null ? at : { ...at, ...locator.place(at) };
  const tiles = new Set<string>();
  const differingTiles = new Set<string>();
  let differing = 0;
  let differingRows = 0;
  let firstRow = -1;
  let largest = 0;
  let largestAt = -1;
  const differingHeads: number[] = [];
  for (let row = 0; row < batch * heads * queries; row++) {
    const { batch: ofBatch, head: ofHead, sequence = 0, query } = placeOf(rowAt(shape, row));
    const tile = `${ofBatch} ${ofHead} ${sequence} ${Math.floor(query! / comparedTile)}`;
    tiles.add(tile);
    let ofRow = 0;
    for (let i = row * vDim; i < (row + 1) * vDim; i++) {
      if (Object.is(first[i], second[i])) continue;
      ofRow++;
      const difference = Math.abs(first[i] - second[i]);
      if (difference < Infinity && (difference > largest || largestAt < 0)) {
        largest = difference;
        largestAt = i;
      }
    }
    if (ofRow === 0) continue;
    differing += ofRow;
    differingRows++;
    if (firstRow < 0) firstRow = row;
    const head = Math.floor(row / queries);
    differingTiles.add(tile);
    if (differingHeads.at(-1) !== head) differingHeads.push(head);
  }
  return {
    elements: first.length,
    differing,
    rows: batch * heads * queries,
    differingRows,
    tiles: tiles.size,
    differingTiles: differingTiles.size,
    heads: batch * heads,
    differingHeads,
    first: firstRow < 0 ? null : placeOf(rowAt(shape, firstRow)),
    largest:
      largestAt < 0 ? null : { difference: largest, at: placeOf(elementAt(shape, largestAt)) },
  };
}

function rowAt(shape: AttentionReference['shape'], row: number): Coordinates {
  const { batch, head, query } = elementAt(shape, row * shape.vDim);
  return { batch, head, query };
}

/** The mean square of a row's errors relative to Σ p|v|; infinite where the output is not finite. */
function rowError(
  { quantities: { out }, shape: { vDim } }: AttentionReference,
  values: Float64Array,
  row: number,
): number {
  let squares = 0;
  for (let i = row * vDim; i < (row + 1) * vDim; i++) {
    const error = Math.abs(values[i] - out.values[i]);
    // A row of zeros, exactly, has no magnitude: any error in it is infinitely large.
    const relative = error === 0 ? 0 : error / out.magnitude[i];
    squares += relative * relative;
  }
  return Number.isNaN(squares) ? Infinity : squares / vDim;
}

function isExactFinite({ quantities, shape }: AttentionReference, row: number): boolean {
  const { values, magnitude } = quantities.out;
  for (let i = row * shape.vDim; i < (row + 1) * shape.vDim; i++)
    if (!Number.isFinite(values[i]) || !Number.isFinite(magnitude[i])) return false;
  return true;
}

/** The difference of two errors; 0 where both are infinite. */
function difference(a: number, b: number): number {
  return a === b ? 0 : a - b;
}

/**
 * Tests which of two outputs is closer to the exact one, by a paired test of their rows' root mean square
 * errors. Rows that may err alike are one unit, of their mean; and so are rows whose errors are the same numbers
 * in both outputs, as in heads that repeat one another.
 *
 * @param unit rows of one number may err alike: `ElementBounds.unit`
 */
function compareCloseness(
  reference: AttentionReference,
  unit: Int32Array,
  first: Float64Array,
  second: Float64Array,
): Closeness {
  const units = new Map<number, { first: number; second: number; rows: number }>();
  const total = { first: 0, second: 0, rows: 0 };
  for (let row = 0; row < unit.length; row++) {
    if (!isExactFinite(reference, row)) continue;
    const [a, b] = [rowError(reference, first, row), rowError(reference, second, row)];
    const known = units.get(unit[row]) ?? { first: 0, second: 0, rows: 0 };
    units.set(unit[row], known);
    for (const sum of [known, total]) {
      sum.first += a;
      sum.second += b;
      sum.rows++;
    }
  }
  const distinct = new Map<string, number>();
  for (const { first: a, second: b, rows } of units.values()) {
    const [ofFirst, ofSecond] = [Math.sqrt(a / rows), Math.sqrt(b / rows)];
    distinct.set(`${ofFirst} ${ofSecond}`, difference(ofFirst, ofSecond));
  }
  const test = signedRankTest(Float64Array.from(distinct.values()));
  const rms = (sum: number) => (total.rows === 0 ? 0 : Math.sqrt(sum / total.rows));
  return {
    ...test,
    rows: total.rows,
    firstCloser: test.units - test.positive,
    rms: [rms(total.first), rms(total.second)],
  };
}

/** The rows of two outputs that are compared. */
export interface ComparedRows {
  /** Rows of one number may err alike: `ElementBounds.unit`. */
  readonly unit: Int32Array;
  /** The rows of a sample: places are those of the whole problem. */
  readonly selection?: RowSelection | undefined;
  /** Packed sequences, if there are any: places are within them. */
  readonly sequences?: RowsOf['sequences'];
}

/** Compares two outputs of one problem: their differences, and which of them is closer to the exact one. */
export function compareOutputs(
  reference: AttentionReference,
  rows: ComparedRows,
  first: Float64Array,
  second: Float64Array,
): OutputDifference {
  return {
    ...findDifferences(reference, rows, first, second),
    closeness: compareCloseness(reference, rows.unit, first, second),
  };
}
