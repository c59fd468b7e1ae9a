import type { HypothesisFamily } from '../../hypothesis.js';
import { predictWeighted } from '../../prediction.js';
import { createRowShares } from '../../row-shares.js';
import { faultyRow, type TileFault } from './faulty-row.js';
import type { KeyTile } from './granule-sums.js';
import { RankedRows, rankingRows, rankTiles, triedInFull } from './rank-tiles.js';

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
