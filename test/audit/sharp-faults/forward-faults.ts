import type { SpreadScope } from '../../../src/audit/index.js';
import type { ForwardCaseName } from './forward-cases.js';
import {
  along,
  errorsAt,
  firstTile,
  looselyBounded,
  oneRow,
  orthogonal,
  otherTiles,
  product,
  scattered,
  tightlyBounded,
  tileRows,
  wholeHead,
  type Pattern,
  type Place,
  type Spoiled,
} from './patterns.js';

/** The statistics of an output and an LSE, with their scope. */
export type ForwardStatisticName =
  | 'non-finite'
  | 'element-bound'
  | 'element-spread'
  | `rms ${SpreadScope}`
  | `${'scale' | 'bias'} ${'row' | 'tile' | 'head'}`
  | `key-tile ${'tile' | 'head'}`
  | `${'truncation' | 'dispersion' | 'lse-mean'} head`
  | 'lse-non-finite'
  | 'lse-bound';

/** An output that is to be spoiled, with what leaving out a tile of keys does to it, to first order. */
export interface SpoiledOutput extends Spoiled {
  readonly withoutTile: Float64Array;
}

/** Errors of an output of some problem that one statistic sees, and no other. */
export interface ForwardFault {
  readonly of: ForwardCaseName;
  readonly quantity: 'out' | 'lse';
  readonly errors: Pattern<SpoiledOutput>;
}

/** What errors of an output may follow. */
type Direction = (of: SpoiledOutput, element: number) => number;

const exact: Direction = (of, i) => of.exact[i];
const one: Direction = () => 1;
/** Half an ulp away from zero. */
const half: Direction = (of, i) =>
  Math.sign(of.exact[i]) * 2 ** Math.floor(Math.log2(Math.abs(of.exact[i])));
const tile: Direction = (of, i) => of.withoutTile[i];

/** Each row's errors follow it in one sense or the other. */
const ownFactors: Direction = (of, i) =>
  (Math.floor(i / of.columns) % 2 === 0 ? 1 : -1) * of.exact[i];

/**
 * Errors that follow a direction in some rows, and none of others in any of the places, as weighed by what elements err by.
 */
function following(
  place: Place,
  direction: Direction,
  others: readonly (readonly [Direction, Place])[] = [],
): Pattern<SpoiledOutput> {
  return (of) => {
    const { deviation } = of.bound;
    const weighed = (where: Place, along: Direction) =>
      errorsAt(of, where, (i) => along(of, i) / deviation[i]);
    const left = orthogonal(
      weighed(place, direction),
      others.map(([along, where]) => weighed(where, along)),
    );
    return left.map((x, i) => x * deviation[i]);
  };
}

const tiles = [firstTile, otherTiles];
/** No slope and no mean of any tile of queries. */
const unseen = tiles.flatMap((place) => [[exact, place] as const, [one, place] as const]);

/** The same errors, smaller on the first tile of queries. */
const lessOnFirstTile =
  (pattern: Pattern<SpoiledOutput>): Pattern<SpoiledOutput> =>
  (of) => {
    const errors = pattern(of);
    return errorsAt(of, wholeHead, (i, _, row) => (row < tileRows ? 0.8 : 1) * errors[i]);
  };

/** Errors of a part of half an ulp away from zero, most of whose slope on the exact values is taken out, row by row. */
const truncated: Pattern<SpoiledOutput> = (of) => {
  const { columns } = of;
  const halves = errorsAt(of, wholeHead, (i) => half(of, i));
  return halves.map((x, i) => {
    const row = i - (i % columns);
    const slope =
      product(halves.subarray(row, row + columns), of.exact.subarray(row, row + columns)) /
      product(of.exact.subarray(row, row + columns), of.exact.subarray(row, row + columns));
    return x - 0.982 * slope * of.exact[i];
  });
};

/** For every statistic of an output and an LSE an error that it alone sees. */
export const forwardFaults = {
  'non-finite': {
    of: 'plain',
    quantity: 'out',
    errors: (of) => tightlyBounded(of).map((x) => (x === 0 ? 0 : NaN)),
  },
  'element-bound': { of: 'few', quantity: 'out', errors: tightlyBounded },
  'element-spread': { of: 'plain', quantity: 'out', errors: looselyBounded },
  'rms tile': { of: 'plain', quantity: 'out', errors: scattered(firstTile) },
  'rms head': { of: 'plain', quantity: 'out', errors: scattered(wholeHead, 0.8) },
  'scale row': { of: 'plain', quantity: 'out', errors: along(oneRow, (spoiled) => spoiled.exact) },
  'scale tile': { of: 'plain', quantity: 'out', errors: following(firstTile, exact) },
  'scale head': { of: 'plain', quantity: 'out', errors: following(wholeHead, exact) },
  'bias row': { of: 'plain', quantity: 'out', errors: following(oneRow, one) },
  'bias tile': { of: 'plain', quantity: 'out', errors: following(firstTile, one) },
  'bias head': { of: 'plain', quantity: 'out', errors: following(wholeHead, one) },
  'truncation head': { of: 'plain', quantity: 'out', errors: truncated },
  'dispersion head': {
    of: 'plain',
    quantity: 'out',
    errors: following(wholeHead, ownFactors, unseen),
  },
  'key-tile tile': { of: 'plain', quantity: 'out', errors: following(firstTile, tile, unseen) },
  'key-tile head': {
    of: 'plain',
    quantity: 'out',
    errors: lessOnFirstTile(following(wholeHead, tile, unseen)),
  },
  'lse-non-finite': {
    of: 'plain',
    quantity: 'lse',
    errors: (of) => errorsAt(of, oneRow, () => NaN),
  },
  'lse-bound': { of: 'plain', quantity: 'lse', errors: (of) => errorsAt(of, oneRow, () => 1) },
  'lse-mean head': {
    of: 'plain',
    quantity: 'lse',
    errors: (of) => errorsAt(of, wholeHead, () => 1),
  },
} as const satisfies Readonly<Record<ForwardStatisticName, ForwardFault>>;
