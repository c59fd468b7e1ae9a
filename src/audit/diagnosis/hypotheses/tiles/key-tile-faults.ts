import { clipRanges, spanOf, type ProblemShape } from '../../../../problem/index.js';
import { lazily } from '../../../../reuse.js';
import type { HypothesisFamily, SampleRow } from '../../hypothesis.js';
import { predictWeighted, type WeightedRow } from '../../prediction.js';
import type { RowReader } from '../../row-reader.js';
import { createRowShares, type RowShares } from '../../row-shares.js';
import { GranuleSums, ownTile, type KeyTile, type TileSource } from './granule-sums.js';

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
/** Damaged rows that rank the tiles. */
const rankingRows = 6;

/** What rows under a fault of a tile are made from. */
interface TileRows {
  readonly reader: RowReader;
  readonly shares: RowShares;
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

interface Candidate {
  readonly tile: KeyTile;
  readonly fault: TileFault;
  readonly misfit: number;
}

/** Sums of the ranking rows over stretches of keys, whatever the tiles are that consist of these. */
class RankedRows {
  readonly rows: readonly SampleRow[];
  readonly #of: TileRows;
  readonly #granule: number;
  readonly #own: () => readonly GranuleSums[];
  readonly #ofZeroKeys: () => readonly GranuleSums[];

  constructor(of: TileRows, rows: readonly SampleRow[], granule: number) {
    this.rows = rows;
    this.#of = of;
    this.#granule = granule;
    this.#own = lazily(() => this.#sums(ownTile));
    this.#ofZeroKeys = lazily(() => this.#sums({ ...ownTile, zeroKeys: true }));
  }

  /** The sums of a row with K and V of its own. */
  own(row: number): GranuleSums {
    return this.#own()[row];
  }

  /** The sums of a row with K and V as tiles of one size with a fault have them. */
  faulty(row: number, size: number, { keysFrom, valuesFrom, zeroKeys }: TileFault): GranuleSums {
    if (zeroKeys && valuesFrom === 0) return this.#ofZeroKeys()[row];
    if (keysFrom === 0 && valuesFrom === 0) return this.own(row);
    const source = { keysFrom: keysFrom * size, valuesFrom: valuesFrom * size, zeroKeys };
    return this.#sumsOf(this.rows[row], source);
  }

  #sums(source: TileSource): readonly GranuleSums[] {
    return this.rows.map((row) => this.#sumsOf(row, source));
  }

  #sumsOf(row: SampleRow, source: TileSource): GranuleSums {
    const { reader, shares } = this.#of;
    return new GranuleSums(reader, row, shares(row), this.#granule, source);
  }
}

/** The tiles of one size that rows under one kind of fault are least far from, in order; of equally far ones the first. */
function rankTiles(
  { keys, vDim }: ProblemShape,
  ranked: RankedRows,
  size: number,
  fault: TileFault,
): Candidate[] {
  const count = Math.ceil(keys / size);
  const tileAt = (t: number) => ({ begin: t * size, end: Math.min((t + 1) * size, keys) });
  const misfits = new Float64Array(count);
  for (const [index, row] of ranked.rows.entries()) {
    const sums = ranked.own(index);
    const faulty = ranked.faulty(index, size, fault);
    for (let t = 0; t < count; t++) {
      const tile = tileAt(t);
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
      if (observedLse === null || !Number.isFinite(observedLse)) continue;
      const lseError = observedLse - row.correct.lse - Math.log(total);
      const ofLse = (lseError / row.bound.lse) ** 2;
      misfits[t] += ofLse < largestMisfit ? ofLse : largestMisfit;
    }
  }
  const best: Candidate[] = [];
  misfits.forEach((misfit, t) => {
    if (best.length === triedInFull && !(misfit < best[triedInFull - 1].misfit)) return;
    const place = best.findLastIndex((one) => one.misfit <= misfit) + 1;
    best.splice(place, 0, { tile: tileAt(t), fault, misfit });
    if (best.length > triedInFull) best.pop();
  });
  return best;
}

function describeKeys({ begin, end }: KeyTile): string {
  return `keys ${begin} to ${end - 1}`;
}

/** Faults of one tile of keys: of the whole problem's tiles, those that the worst rows point to. */
export const keyTileHypotheses: HypothesisFamily = function* (context) {
  const { reader, shape, sample } = context;
  const rows = sample.filter((row) => row.damaged).slice(0, rankingRows);
  const shares = createRowShares(reader);
  const of = { reader, shares, isLong: context.isLong === true };
  const sizes = tileSizes.filter((size) => size < shape.keys);
  const finest = of.isLong ? new RankedRows(of, rows, Math.min(...sizes)) : null;
  const candidates = sizes
    .flatMap((size) => {
      const ranked = finest ?? new RankedRows(of, rows, size);
      return tileFaults.flatMap((fault) => rankTiles(shape, ranked, size, fault));
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
