import { decodeMeasured, decodeTensor, type RowMeasures } from '../../formats/index.js';
import { lazily, type WorkingMemories } from '../../reuse.js';
import {
  areSameRanges,
  type KeyRange,
  type Problem,
  type ProblemShape,
} from '../../problem/index.js';
import { tileRows } from './memory.js';

/** A factor that covers the error of a sum of squares and its root. */
const up = 1 + 2 ** -40;

/** Sums of squares between these have lost nothing to the ends of the range of fp64 that `up` does not make good. */
const leastSquares = 2 ** -900;
const mostSquares = 2 ** 1000;

/** Whether no square that counts in a sum of squares has left the range of fp64. */
export function isWithinRange(squares: number): boolean {
  return squares > leastSquares && squares < mostSquares;
}

/** The norm of numbers with a sum of squares that is within the range of fp64: what `euclideanNorm` gives. */
export function normOfSquares(squares: number): number {
  return Math.sqrt(squares) * up;
}

/**
 * The Euclidean norm of values[from … to), finite ones, rounded up; infinite where it is beyond the range of
 * fp64, 0 for zeros alone.
 */
export function euclideanNorm(values: Float64Array, from: number, to: number): number {
  let squares = 0;
  for (let t = from; t < to; t++) squares += values[t] * values[t];
  if (isWithinRange(squares)) return normOfSquares(squares);
  let largest = 0;
  for (let t = from; t < to; t++) largest = Math.max(largest, Math.abs(values[t]));
  if (largest === 0) return 0;
  squares = 0;
  for (let t = from; t < to; t++) squares += (values[t] / largest) ** 2;
  return largest * Math.sqrt(squares) * up;
}

/** Magnitudes of the keys and values of one head, by key. */
export interface KeyExtents {
  /** The largest Euclidean norm of some keys, rounded up; of keys with infinities or NaNs none counts. */
  readonly keyNorm: (ranges: readonly KeyRange[]) => number;
  /** The largest finite magnitude among the values of some keys. */
  readonly value: (ranges: readonly KeyRange[]) => number;
  /** [vDim]: the same by column. Not to be changed. */
  readonly valueByColumn: (ranges: readonly KeyRange[]) => Float64Array;
}

/** The largest of some magnitudes by key, and by tile of 64 keys from the first on. */
interface Magnitudes {
  readonly byKey: Float64Array;
  readonly byTile: Float64Array;
}

/** The tiles of 64 keys that lie within a range: from `first` up to `end` (not included), none where first ≥ end. */
function wholeTiles({ begin, end }: KeyRange) {
  return { first: Math.ceil(begin / tileRows), end: Math.floor(end / tileRows) };
}

/** The keys of a range that lie in no tile within it. */
function looseKeys(range: KeyRange): KeyRange[] {
  const { first, end } = wholeTiles(range);
  if (first >= end) return [range];
  return [
    { begin: range.begin, end: first * tileRows },
    { begin: end * tileRows, end: range.end },
  ];
}

function largestOf({ byKey, byTile }: Magnitudes, ranges: readonly KeyRange[]): number {
  let largest = 0;
  for (const range of ranges) {
    const { first, end } = wholeTiles(range);
    for (let tile = first; tile < end; tile++) largest = Math.max(largest, byTile[tile]);
    for (const loose of looseKeys(range))
      for (let key = loose.begin; key < loose.end; key++) largest = Math.max(largest, byKey[key]);
  }
  return largest;
}

function isFiniteRow(values: Float64Array, from: number, to: number): boolean {
  for (let t = from; t < to; t++) if (!Number.isFinite(values[t])) return false;
  return true;
}

/** Magnitudes of `count` keys, a tile at a time: `write` fills `byKey` for the `keys` keys from `first` on. */
function measure(
  count: number,
  write: (byKey: Float64Array, first: number, keys: number) => void,
): Magnitudes {
  const byKey = new Float64Array(count);
  const byTile = new Float64Array(Math.ceil(count / tileRows));
  for (let tile = 0; tile < byTile.length; tile++) {
    const first = tile * tileRows;
    const keys = Math.min(tileRows, count - first);
    write(byKey, first, keys);
    for (let key = first; key < first + keys; key++)
      byTile[tile] = Math.max(byTile[tile], byKey[key]);
  }
  return { byKey, byTile };
}

/** The norm of each of some rows, of which those with infinities or NaNs count as 0. */
function writeNorms(
  norms: Float64Array,
  values: Float64Array,
  dim: number,
  measures: RowMeasures | null,
): void {
  for (let i = 0; i < norms.length; i++) {
    const squares = measures?.squares[i] ?? 0;
    if (isWithinRange(squares)) {
      norms[i] = normOfSquares(squares);
      continue;
    }
    const norm = euclideanNorm(values, i * dim, (i + 1) * dim);
    const isFinite = norm < Infinity || isFiniteRow(values, i * dim, (i + 1) * dim);
    norms[i] = isFinite ? norm : 0;
  }
}

/** The largest finite magnitude of each of some rows. */
function writeLargest(
  largest: Float64Array,
  values: Float64Array,
  dim: number,
  measures: RowMeasures | null,
): void {
  if (measures !== null) return largest.set(measures.largest);
  for (let i = 0, at = 0; i < largest.length; i++)
    for (let c = 0; c < dim; c++, at++) {
      const size = Math.abs(values[at]);
      if (size > largest[i] && size < Infinity) largest[i] = size;
    }
}

/** Raises the largest magnitudes by column by those of some rows, infinities and NaNs left out. */
function raise(largest: Float64Array, values: Float64Array): void {
  const dim = largest.length;
  for (let at = 0, column = 0; at < values.length; at++) {
    const size = Math.abs(values[at]);
    if (size > largest[column] && size < Infinity) largest[column] = size;
    if (++column === dim) column = 0;
  }
}

/** A function that remembers its last answer, for rows that see the same keys one after the other. */
function remembered<T>(of: (ranges: readonly KeyRange[]) => T): (ranges: readonly KeyRange[]) => T {
  let known: { readonly ranges: readonly KeyRange[]; readonly result: T } | null = null;
  return (ranges) => {
    if (known === null || !areSameRanges(known.ranges, ranges))
      known = { ranges, result: of(ranges) };
    return known.result;
  };
}

/**
 * Makes a function that gives the magnitudes of the keys and values of a kv head (counted over [batch, kvHeads]), of the
 * keys that a row sees and no others: keys behind a mask, or of another sequence, must not loosen a bound. Tensors are
 * decoded 64 rows at a time, when first asked for; two numbers a key are kept, and one a column for every 64.
 * @param memories remember those of a kv head for other queries
 */
export function createKeyExtents(
  { k, v }: Problem,
  { keys, qkDim, vDim }: ProblemShape,
  memories?: WorkingMemories,
): (kvHead: number) => KeyExtents {
  // Keys of a range that fill no tile are fewer than those of two.
  const room = new Float64Array(2 * tileRows * Math.max(qkDim, vDim));
  const rowsOf = (tensor: typeof k, kvHead: number, first: number, count: number, dim: number) => {
    const begin = (kvHead * keys + first) * dim;
    const place = room.subarray(0, count * dim);
    return decodeTensor(tensor, begin, begin + count * dim, place);
  };
  /** The rows of a tile, and their measures where they are known. */
  const tileOf = (tensor: typeof k, kvHead: number, first: number, count: number, dim: number) => {
    const begin = (kvHead * keys + first) * dim;
    const place = room.subarray(0, count * dim);
    const measures = decodeMeasured(tensor, begin, begin + count * dim, dim, place);
    const values = measures === null ? rowsOf(tensor, kvHead, first, count, dim) : place;
    return { values, measures };
  };
  const create = (kvHead: number): KeyExtents => {
    const norms = lazily(() =>
      measure(keys, (byKey, first, count) => {
        const { values, measures } = tileOf(k, kvHead, first, count, qkDim);
        writeNorms(byKey.subarray(first, first + count), values, qkDim, measures);
      }),
    );
    const ofValues = lazily(() => {
      const columns: Float64Array[] = [];
      const largest = measure(keys, (byKey, first, count) => {
        const { values, measures } = tileOf(v, kvHead, first, count, vDim);
        writeLargest(byKey.subarray(first, first + count), values, vDim, measures);
        const ofColumns = new Float64Array(vDim);
        raise(ofColumns, measures?.columns ?? values);
        columns.push(ofColumns);
      });
      return { largest, columns };
    });
    return {
      keyNorm: remembered((ranges) => largestOf(norms(), ranges)),
      value: remembered((ranges) => largestOf(ofValues().largest, ranges)),
      valueByColumn: remembered((ranges) => {
        const largest = new Float64Array(vDim);
        for (const range of ranges) {
          const { first, end } = wholeTiles(range);
          for (let tile = first; tile < end; tile++) raise(largest, ofValues().columns[tile]);
          for (const { begin, end } of looseKeys(range))
            if (begin < end) raise(largest, rowsOf(v, kvHead, begin, end - begin, vDim));
        }
        return largest;
      }),
    };
  };
  if (memories === undefined || k.scales !== undefined || v.scales !== undefined) return create;
  const kind = `extents ${k.format} ${v.format} ${keys} ${qkDim} ${vDim}`;
  const ofHead = (tensor: typeof k, kvHead: number, dim: number) =>
    tensor.data.subarray(kvHead * keys * dim, (kvHead + 1) * keys * dim);
  return (kvHead) =>
    memories.remember(kind, [ofHead(k, kvHead, qkDim), ofHead(v, kvHead, vDim)], () =>
      create(kvHead),
    );
}
