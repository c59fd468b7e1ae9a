import type { GradientTest, JudgedGradientName, SpreadScope } from '../../../src/audit/index.js';
import type { Fault } from '../../../src/audit/findings.js';
import type { GradientCaseName } from './gradient-cases.js';
import {
  along,
  errorsAt,
  firstTile,
  looselyBounded,
  orthogonal,
  otherTiles,
  product,
  scattered,
  tightlyBounded,
  wholeHead,
  type Pattern,
  type Place,
  type Spoiled,
} from './patterns.js';

/** The statistics of a gradient, with their scope. */
export type GradientStatisticName =
  | Exclude<Fault, 'rms'>
  | `rms ${SpreadScope}`
  | `scale ${'tile' | 'head'}`
  | `${Exclude<GradientTest, 'scale'>} head`;

/** A gradient that is to be spoiled, with the tensor that it is of. */
export interface SpoiledGradient extends Spoiled {
  readonly tensor: Float64Array;
}

/** Errors of a gradient of some problem that one statistic sees, and no other. */
export interface GradientFault {
  readonly of: GradientCaseName;
  readonly errors: Pattern<SpoiledGradient>;
}

const exact = (of: Spoiled) => of.exact;

/** Errors of one column. */
const inColumn = (of: Spoiled, column: number, error: (element: number) => number) =>
  errorsAt(of, wholeHead, (i, ofElement) => (ofElement === column ? error(i) : 0));

/** Errors that follow the exact values and leave the sum of every column alone. */
const besideSums: Pattern<SpoiledGradient> = (of) =>
  orthogonal(
    along(wholeHead, exact)(of),
    Array.from({ length: of.columns }, (_, column) => inColumn(of, column, () => 1)),
  );

/** Errors that follow the exact values of a tile, most of which the rest of the head makes up for. */
const madeUpFor: Pattern<SpoiledGradient> = (of) => {
  const weighed = (place: Place) =>
    errorsAt(of, place, (i) => of.exact[i] * of.bound.deviation[i] ** 2);
  const [tile, rest] = [weighed(firstTile), weighed(otherTiles)];
  const share = (0.8 * product(tile, of.exact)) / product(rest, of.exact);
  return tile.map((x, i) => x - share * rest[i]);
};

/** Errors that follow K, and not the exact dK: ⟨K, dK⟩ is off, and its slope is not. */
const alongTensor: Pattern<SpoiledGradient> = (of) =>
  orthogonal(along(wholeHead, () => of.tensor)(of), [errorsAt(of, wholeHead, (i) => of.exact[i])]);

/** What all gradients of vectors are seen by. */
const ofVectors = (of: GradientCaseName) =>
  ({
    'non-finite': {
      of,
      errors: (spoiled) => tightlyBounded(spoiled).map((x) => (x === 0 ? 0 : NaN)),
    },
    bound: { of, errors: tightlyBounded },
    spread: { of, errors: looselyBounded },
    'rms tile': { of, errors: scattered(firstTile) },
    'rms head': { of, errors: scattered(wholeHead, 0.9) },
    'scale tile': { of, errors: along(firstTile, exact) },
    'scale head': { of, errors: along(wholeHead, exact) },
    'sum head': {
      of,
      errors: (spoiled) => {
        const { systematic, deviation } = spoiled.bound;
        return inColumn(spoiled, spoiled.columns - 1, (i) => systematic[i] + deviation[i]);
      },
    },
  }) as const satisfies Record<Exclude<GradientStatisticName, 'pairing head'>, GradientFault>;

/** Of each gradient, what it is seen by. */
type GradientFaults = Readonly<{
  [Name in JudgedGradientName]: Partial<Record<GradientStatisticName, GradientFault>>;
}>;

/** For every statistic of every gradient an error that it alone sees. */
export const gradientFaults = {
  dq: ofVectors('plain'),
  dk: {
    ...ofVectors('aligned'),
    bound: { of: 'few', errors: tightlyBounded },
    'scale tile': { of: 'aligned', errors: madeUpFor },
    'pairing head': { of: 'aligned', errors: alongTensor },
  },
  dv: { ...ofVectors('plain'), 'scale head': { of: 'plain', errors: besideSums } },
  dbias: ofVectors('shared'),
  // The root mean square of one number is dominated: it has a limit of 7.5 deviations at least, the spread of 7.
  dsink: {
    'non-finite': ofVectors('few')['non-finite'],
    bound: { of: 'few', errors: tightlyBounded },
    spread: { of: 'shared', errors: looselyBounded },
  },
} as const satisfies GradientFaults;
