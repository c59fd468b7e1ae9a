import type { JudgedGradientName } from '../gradient-quantities.js';

/** Techniques that errors of gradients come from, in the order of a backward pass: docs/theory/bounds-backward.md. */
export const gradientTechniques = [
  'lse-input',
  'delta',
  'p-recompute',
  'p-round',
  'dp-accumulate',
  'ds-round',
  'dq-accumulate',
  'dk-accumulate',
  'dv-accumulate',
  'dbias-accumulate',
  'dsink-accumulate',
  'group-sum',
  'scale',
  'output-round',
] as const;
/** One of {@link gradientTechniques}. */
export type GradientTechnique = (typeof gradientTechniques)[number];

/** Places of the techniques in arrays of shares: the sums over pairs share one. */
export const techniquePlaces = {
  lseInput: 0,
  delta: 1,
  pRecompute: 2,
  pRound: 3,
  dpAccumulate: 4,
  dsRound: 5,
  accumulate: 6,
  groupSum: 7,
  scale: 8,
  outputRound: 9,
} as const;

/** Number of places in a row of shares, and how many of them, the first ones, are of single pairs. */
export const placeCount = 10;
export const pairPlaces = 6;

/** The techniques that a gradient knows, by their places; `null` for those that it does not. */
function known(of: JudgedGradientName): readonly (GradientTechnique | null)[] {
  const isOfScores = of !== 'dv';
  return [
    'lse-input',
    isOfScores ? 'delta' : null,
    'p-recompute',
    'p-round',
    isOfScores ? 'dp-accumulate' : null,
    isOfScores ? 'ds-round' : null,
    `${of}-accumulate`,
    of === 'dk' || of === 'dv' ? 'group-sum' : null,
    'scale',
    'output-round',
  ];
}

/** The techniques of each gradient, by their places; `null` where it has none. */
export const techniquesByPlace = {
  dq: known('dq'),
  dk: known('dk'),
  dv: known('dv'),
  dbias: known('dbias'),
  dsink: known('dsink'),
} as const;

/**
 * The effect of each technique on a row of a gradient, [rows × 10] by `techniquePlaces`: sums over the row's elements. With the
 * oracle's radius the worst cases of all techniques add up to `GradientTechniqueBound.total`, the variances to the squares of
 * `deviation`.
 */
export interface TechniqueShares {
  readonly worst: Float64Array;
  readonly variance: Float64Array;
}

/** Shares of nothing yet. */
export function emptyTechniqueShares(rows: number): TechniqueShares {
  return {
    worst: new Float64Array(rows * placeCount),
    variance: new Float64Array(rows * placeCount),
  };
}

/** Adds to a technique's share in a row. */
export function addShare(
  shares: TechniqueShares,
  row: number,
  place: number,
  worst: number,
  variance: number,
): void {
  shares.worst[row * placeCount + place] += worst;
  shares.variance[row * placeCount + place] += variance;
}

/** Multiplies the shares that single pairs have in a row, once they are all summed. @param growth of the worst cases beside */
export function scaleShares(
  shares: TechniqueShares,
  row: number,
  factor: number,
  growth: number,
): void {
  for (let at = row * placeCount; at < row * placeCount + pairPlaces; at++) {
    shares.worst[at] *= factor * growth;
    shares.variance[at] *= factor ** 2;
  }
}
