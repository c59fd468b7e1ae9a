/**
 * Parts of a pair's errors that are summed into an element, each times the sizes, squares or values of the other factor; in the order
 * of the loops.
 */
export const pairParts = [
  'worst',
  'magnitude',
  'systematic',
  'variance',
  'known',
  'byFirst',
  'bySecond',
  'byThird',
  'signed',
  'value',
  'squares',
  'ofWeights',
  'ofScores',
  'ofProducts',
  'ofMeans',
] as const;
/** Parts that would be known by factors that numbers may have when they are rounded, beside the smallest. */
export const otherParts = ['byFirst', 'bySecond', 'byThird'] as const;
/** The parts that are known, by each factor that there may be. */
export const knownParts = ['known', ...otherParts] as const;
export type KnownPart = (typeof knownParts)[number];
/** The largest number of such factors: dropout's, the scale's and that of both. */
export const mostOtherUnits = otherParts.length;

/**
 * One of {@link pairParts}: `magnitude` is that of the terms, errors and all; `signed` is P·slope for dQ, and the shift by the
 * stored forward for dK and dV; `value` is dT or P, and `squares` theirs; the others are the errors where all scores of the
 * forward pass, all scores, dP or D are off by the same share.
 */
export type PairPart = (typeof pairParts)[number];

type ByPart<T> = Readonly<Record<PairPart, T>>;

/** Sums of a gradient's elements. */
export interface PairSums extends ByPart<Float64Array> {
  /** The largest size that the running sums of `value` have had. */
  readonly largest: Float64Array;
}

/** Arrays of `length` sums, all 0; empty for parts that are not summed. */
export function emptyPairSums(
  length: number,
  { parts }: { readonly parts: readonly PairPart[] },
): PairSums {
  const numbers = (part: PairPart) => new Float64Array(parts.includes(part) ? length : 0);
  return { ...byPart(numbers), largest: numbers('value') };
}

/** Makes a value for each part. */
function byPart<T>(make: (part: PairPart) => T): ByPart<T> {
  return Object.fromEntries(pairParts.map((part) => [part, make(part)])) as ByPart<T>;
}

/** Parts that only the errors of fp32 sums follow from, which are little beside roundings of operands. */
const ofSums: readonly PairPart[] = [
  'value',
  'squares',
  'ofWeights',
  'ofScores',
  'ofProducts',
  'ofMeans',
];

/**
 * The parts that are summed.
 * @param isOfSums whether errors of fp32 sums count
 * @param others number of factors that numbers may have when they are rounded, beside the smallest
 */
export function summedParts(isOfSums: boolean, others: number): readonly PairPart[] {
  const unused = [...(isOfSums ? [] : ofSums), ...otherParts.slice(others)];
  return pairParts.filter((part) => !unused.includes(part));
}

/** One of the three arrays that pairs are multiplied by. */
export type FactorKind = 'values' | 'sizes' | 'squares';

/** The array that each part is multiplied by. */
export const factorOf = {
  worst: 'sizes',
  magnitude: 'sizes',
  systematic: 'sizes',
  variance: 'squares',
  known: 'values',
  byFirst: 'values',
  bySecond: 'values',
  byThird: 'values',
  signed: 'values',
  value: 'values',
  squares: 'squares',
  ofWeights: 'values',
  ofScores: 'values',
  ofProducts: 'values',
  ofMeans: 'values',
} as const satisfies ByPart<FactorKind>;
