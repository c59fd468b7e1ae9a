import { clipRanges, spanOf } from '../../../../problem/index.js';
import type { SampleRow } from '../../hypothesis.js';
import type { WeightedRow } from '../../prediction.js';
import type { RowReader } from '../../row-reader.js';
import type { RowShares } from '../../row-shares.js';
import type { KeyTile } from './granule-sums.js';

/**
 * A fault of one tile of keys: the tile's weights in the sum over V and in the row sum, in multiples of the
 * correct ones, or the tile that K or V comes from, in tiles from its own.
 */
export interface TileFault {
  readonly id: string;
  readonly technique: string | null;
  readonly statement: (keys: string) => string;
  readonly inOutput: number;
  readonly inSum: number;
  readonly keysFrom: number;
  readonly valuesFrom: number;
  /** Whether K of the tile reads as zeros. */
  readonly zeroKeys: boolean;
}

/** What rows under a fault of a tile are made from. */
export interface TileRows {
  readonly reader: RowReader;
  readonly shares: RowShares;
  /** Whether V is too large to be copied. */
  readonly isLong: boolean;
}

/** One row under a fault of one tile, or null where the fault leaves nothing of it or does not touch it. */
export function faultyRow(
  { reader, shares, isLong }: TileRows,
  row: SampleRow,
  tile: KeyTile,
  fault: TileFault,
): WeightedRow | 'untouched' | null {
  const touched = clipRanges(row.ranges, tile.begin, tile.end);
  if (touched.length === 0) return 'untouched';
  const { begin: first, end: last } = spanOf(touched);
  const { keys, vDim } = reader.shape;
  const size = tile.end - tile.begin;
  const dots = reader.dots(row.row, row.kv);
  const ofKeys = shares(row);
  const values = reader.valuesOf(row.row, row.kv);
  if (isLong) return longRow(row, { first, last, size }, fault, { reader, shares: ofKeys, values });
  const weights = new Float64Array(keys);
  let sum = Math.exp(reader.sink(row.row) - row.denominator);
  for (const { begin, end } of row.ranges)
    for (let j = begin; j < end; j++) {
      let p = ofKeys[j];
      if (j < first || j >= last) {
        weights[j] = p;
        sum += p;
        continue;
      }
      const source = j + fault.keysFrom * size;
      if (source < 0 || source >= keys) return null;
      if (fault.zeroKeys || source !== j) {
        const dot = fault.zeroKeys ? 0 : dots[source];
        p = Math.exp(reader.score(dot, row.row, j) - row.denominator);
      }
      weights[j] = fault.inOutput * p;
      sum += fault.inSum * p;
    }
  if (!(sum > 0)) return null;
  for (const { begin, end } of row.ranges) for (let j = begin; j < end; j++) weights[j] /= sum;
  const lse = row.denominator + Math.log(sum);
  if (fault.valuesFrom === 0) return { weights, values, lse };
  const from = fault.valuesFrom * size;
  if (first + from < 0 || last + from > keys) return null;
  const moved = values.slice();
  moved.copyWithin(first * vDim, (first + from) * vDim, (last + from) * vDim);
  // The source may not overlap the tile, since they are a whole tile apart.
  return { weights, values: moved, lse };
}

/** The keys of a tile that a row sees, from the first to behind the last, and the number of keys of a tile. */
interface TouchedKeys {
  readonly first: number;
  readonly last: number;
  readonly size: number;
}

/** The correct weights of a row, and the values that they are applied to. */
interface CorrectWeights {
  readonly reader: RowReader;
  readonly shares: Float64Array;
  readonly values: Float64Array;
}

/**
 * A row of many keys under a fault of one tile, by the weights of that tile alone: a value that is read from another tile counts with the
 * weights of both keys. The shares of all keys sum up to 1.
 */
function longRow(
  row: SampleRow,
  { first, last, size }: TouchedKeys,
  fault: TileFault,
  { reader, shares, values }: CorrectWeights,
): WeightedRow | null {
  const { keys } = reader.shape;
  const [keysFrom, valuesFrom] = [fault.keysFrom * size, fault.valuesFrom * size];
  const source = valuesFrom === 0 ? keysFrom : valuesFrom;
  if (first + source < 0 || last + source > keys) return null;
  const [begin, end] = [Math.min(first, first + valuesFrom), Math.max(last, last + valuesFrom)];
  const weights = shares.slice(begin, end).fill(0, first - begin, last - begin);
  const dots = reader.dots(row.row, row.kv);
  let [own, summed] = [0, 0];
  for (const touched of clipRanges(row.ranges, first, last))
    for (let j = touched.begin; j < touched.end; j++) {
      const dot = fault.zeroKeys ? 0 : dots[j + keysFrom];
      const isOwn = keysFrom === 0 && !fault.zeroKeys;
      const p = isOwn ? shares[j] : Math.exp(reader.score(dot, row.row, j) - row.denominator);
      own += shares[j];
      summed += fault.inSum * p;
      weights[j + valuesFrom - begin] += fault.inOutput * p;
    }
  const sum = 1 - own + summed;
  if (!(sum > 0)) return null;
  for (let i = 0; i < weights.length; i++) weights[i] /= sum;
  const relative = { shares, cells: null, range: { begin, end, weights, factor: 1 / sum } };
  return { weights: noWeights, relative, values, lse: row.denominator + Math.log(sum) };
}

const noWeights = new Float64Array(0);
