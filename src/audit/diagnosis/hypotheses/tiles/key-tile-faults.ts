import { clipRanges, spanOf } from '../../../../problem/index.js';
import type { HypothesisContext, HypothesisFamily, SampleRow } from '../../hypothesis.js';
import { predictWeighted, type WeightedRow } from '../../prediction.js';
import { isLong, type RowReader } from '../../row-reader.js';
import { GranuleSums, ownTile, type KeyTile } from './granule-sums.js';

/**
 * A fault of one tile of keys: the tile's weights in the sum over V and in the row sum, in multiples of the
 * correct ones, or the tile that K or V comes from, in tiles from its own.
 */
interface TileFault {
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

const own = {
  inOutput: 1,
  inSum: 1,
  keysFrom: 0,
  valuesFrom: 0,
  technique: null,
  zeroKeys: false,
};

const tileFaults: readonly TileFault[] = [
  {
    ...own,
    id: 'key-tile-missing',
    statement: (keys) => `${keys} are missing`,
    inOutput: 0,
    inSum: 0,
  },
  {
    ...own,
    id: 'key-tile-twice',
    statement: (keys) => `${keys} are counted twice`,
    inOutput: 2,
    inSum: 2,
  },
  {
    ...own,
    id: 'key-tile-not-accumulated',
    technique: 'pv-accumulate',
    statement: (keys) => `the product of P and V is missing for ${keys}`,
    inOutput: 0,
  },
  {
    ...own,
    id: 'key-tile-accumulated-twice',
    technique: 'pv-accumulate',
    statement: (keys) => `the product of P and V is added twice for ${keys}`,
    inOutput: 2,
  },
  {
    ...own,
    id: 'key-tile-not-summed',
    technique: 'row-sum',
    statement: (keys) => `${keys} are not in the row sum`,
    inSum: 0,
  },
  {
    ...own,
    id: 'key-tile-summed-twice',
    technique: 'row-sum',
    statement: (keys) => `${keys} are in the row sum twice`,
    inSum: 2,
  },
  {
    ...own,
    id: 'key-tile-zero-keys',
    statement: (keys) => `K of ${keys} reads as zeros`,
    zeroKeys: true,
  },
  {
    ...own,
    id: 'key-tile-zero',
    statement: (keys) => `K and V of ${keys} read as zeros`,
    zeroKeys: true,
    inOutput: 0,
  },
  ...([1, -1] as const).flatMap((offset): TileFault[] => {
    const side = offset > 0 ? 'next tile' : 'tile before';
    return [
      {
        ...own,
        id: 'key-tile-stale-values',
        statement: (keys) => `V of ${keys} is read from the ${side}`,
        valuesFrom: offset,
      },
      {
        ...own,
        id: 'key-tile-stale-keys',
        statement: (keys) => `K of ${keys} is read from the ${side}`,
        keysFrom: offset,
      },
      {
        ...own,
        id: 'key-tile-stale',
        statement: (keys) => `K and V of ${keys} are read from the ${side}`,
        keysFrom: offset,
        valuesFrom: offset,
      },
    ];
  }),
];

const tileSizes = [128, 64, 32, 16] as const;

/** Tiles of all kinds that are tried in full, after the first rows have ranked them. */
const triedInFull = 24;
/** A row's largest share in a tile's rank: beyond that all misfits are equally bad. */
const largestMisfit = 200;
/** Shares of keys that are kept: 32 MiB. */
const keptShares = 2 ** 22;
/** Damaged rows that rank the tiles. */
const rankingRows = 6;

/** Makes a function that tells the shares of a row's keys in its sum, exp(score − its logarithm); 0 for keys that it does not see. */
function createShares(reader: RowReader): (row: SampleRow) => Float64Array {
  const known = new Map<number, Float64Array>();
  return (row) => {
    const found = known.get(row.row);
    if (found !== undefined) return found;
    const shares = reader.scores(row.row).map((s) => Math.exp(s - row.denominator));
    if ((known.size + 1) * shares.length > keptShares) known.clear();
    known.set(row.row, shares);
    return shares;
  };
}

/** What rows under a fault of a tile are made from. */
interface TileRows {
  readonly reader: RowReader;
  readonly shares: (row: SampleRow) => Float64Array;
  /** Whether V is too large to be copied. */
  readonly isLong: boolean;
}

/** One row under a fault of one tile, or null where the fault leaves nothing of it or does not touch it. */
function faultyRow(
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
  const values = reader.valuesOf(row.row, row.kv);
  if (fault.valuesFrom === 0) return { weights, values, lse };
  const from = fault.valuesFrom * size;
  if (first + from < 0 || last + from > keys) return null;
  if (isLong) {
    // The weights of the tile join those of the keys whose values they are applied to.
    for (let j = first; j < last; j++) weights[j + from] += weights[j];
    weights.fill(0, first, last);
    return { weights, values, lse };
  }
  const moved = values.slice();
  moved.copyWithin(first * vDim, (first + from) * vDim, (last + from) * vDim);
  // The source may not overlap the tile, since they are a whole tile apart.
  return { weights, values: moved, lse };
}

interface Candidate {
  readonly tile: KeyTile;
  readonly fault: TileFault;
  readonly misfit: number;
}

/** Every tile of one size under one kind of fault, by how far the ranking rows are from it. */
function rankTiles(
  { reader, shape }: HypothesisContext,
  rows: readonly SampleRow[],
  size: number,
  fault: TileFault,
  correct: readonly GranuleSums[],
): Candidate[] {
  const { keys, vDim } = shape;
  const tiles = Array.from({ length: Math.ceil(keys / size) }, (_, t) => ({
    begin: t * size,
    end: Math.min((t + 1) * size, keys),
  }));
  const misfits = new Float64Array(tiles.length);
  for (const [index, row] of rows.entries()) {
    const sums = correct[index];
    const faulty =
      fault.keysFrom === 0 && fault.valuesFrom === 0 && !fault.zeroKeys
        ? sums
        : new GranuleSums(reader, row, size, {
            keysFrom: fault.keysFrom * size,
            valuesFrom: fault.valuesFrom * size,
            zeroKeys: fault.zeroKeys,
          });
    tiles.forEach((tile, t) => {
      const total = 1 - sums.weight(tile) + fault.inSum * faulty.weight(tile);
      let squares = 0;
      for (let c = 0; c < vDim; c++) {
        const product =
          row.correct.out[c] - sums.sum(tile, c) + fault.inOutput * faulty.sum(tile, c);
        squares += (row.observed[c] - product / total) ** 2;
      }
      const misfit = squares / row.correct.noise;
      misfits[t] += misfit < largestMisfit ? misfit : largestMisfit;
      const { observedLse } = row;
      if (observedLse === null || !Number.isFinite(observedLse)) return;
      const lseError = observedLse - row.correct.lse - Math.log(total);
      const ofLse = (lseError / row.bound.lse) ** 2;
      misfits[t] += ofLse < largestMisfit ? ofLse : largestMisfit;
    });
  }
  return tiles.map((tile, t) => ({ tile, fault, misfit: misfits[t] }));
}

function describeKeys({ begin, end }: KeyTile): string {
  return `keys ${begin} to ${end - 1}`;
}

/** Faults of one tile of keys: of the whole problem's tiles, those that the worst rows point to. */
export const keyTileHypotheses: HypothesisFamily = function* (context) {
  const { reader, shape, sample } = context;
  const rows = sample.filter((row) => row.damaged).slice(0, rankingRows);
  const shares = createShares(reader);
  const of = { reader, shares, isLong: isLong(context.input.reference.shape) };
  const candidates = tileSizes
    .filter((size) => size < shape.keys)
    .flatMap((size) => {
      const correct = rows.map((row) => new GranuleSums(reader, row, size, ownTile));
      return tileFaults.flatMap((fault) => rankTiles(context, rows, size, fault, correct));
    })
    .sort((a, b) => a.misfit - b.misfit)
    .slice(0, triedInFull)
    .sort(
      (a, b) =>
        tileFaults.indexOf(a.fault) - tileFaults.indexOf(b.fault) ||
        b.tile.end - b.tile.begin - (a.tile.end - a.tile.begin),
    );
  for (const { tile, fault } of candidates)
    yield {
      id: fault.id,
      technique: fault.technique,
      statement: fault.statement(describeKeys(tile)),
      predict: (row) => {
        const faulty = faultyRow(of, row, tile, fault);
        return faulty === 'untouched'
          ? row.correct
          : faulty === null
            ? null
            : predictWeighted(row, faulty);
      },
    };
};
