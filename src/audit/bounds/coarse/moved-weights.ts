import type { UncertainScores } from './uncertain-scores.js';

/** Weights below e^-45 of the largest, whatever their scores' errors, do not contend with it. */
const contending = 45;

/** Bounds of how the weights move, given the error of each exponent. */
export interface MovedWeights {
  /** An upper bound of |w − ŵ|, with ŵ scaled so that the largest weight stays. */
  readonly moved: Float64Array;
  /** A lower bound of Σ ŵ, scaled the same way. */
  readonly least: number;
  /** Whether a key may have weight to speak of. */
  readonly contends: Uint8Array;
  /** Upper bounds of ŵ / ŵ_largest for the keys that do not. */
  readonly rest: Float64Array;
  /** ln of Σ w e^±error, the larger magnitude: the most by which the LSE may move. */
  readonly ofLse: number;
}

/**
 * Bounds how far the weights of a row move when each exponent moves by its error. Theorem 9 of
 * docs/theory/bounds.md.
 * @param exact ln of the sum that the weights are relative to
 * @param shares the shares of the errors that count
 */
export function moveWeights(
  { scores, ofDots, ofExponents, own, common }: UncertainScores,
  exact: number,
  shares: { readonly dots: number; readonly exponents: number },
): MovedWeights {
  const count = scores.length;
  let top = 0;
  for (let j = 1; j < count; j++) if (scores[j] > scores[top]) top = j;
  const errorOf = (j: number) =>
    shares.dots * ofDots[j] + shares.exponents * ofExponents[j] + own[j];
  // Weights of blocks with other maxima in use have another common error.
  const shared = shares.exponents * common;
  const ofTop = errorOf(top) + 2 * shared;
  const moved = new Float64Array(count);
  const rest = new Float64Array(count);
  const contends = new Uint8Array(count);
  const weightOfTop = Math.exp(scores[top] - exact);
  let least = weightOfTop * Math.exp(-own[top]);
  let upper = -Infinity;
  let lower = -Infinity;
  for (let j = 0; j < count; j++) {
    const error = errorOf(j);
    const logarithm = scores[j] - exact;
    upper = Math.max(upper, logarithm + error);
    lower = Math.max(lower, logarithm - error);
    if (j === top) {
      contends[j] = 1;
      continue;
    }
    const relative = scores[j] - scores[top] + error + ofTop;
    contends[j] = relative >= -contending ? 1 : 0;
    if (contends[j] === 0) rest[j] = Math.exp(relative);
    moved[j] = Math.exp(logarithm) * Math.expm1(error + ofTop);
    // 0 · ∞: a weight that is zero, and may be as large as this.
    if (Number.isNaN(moved[j])) moved[j] = Math.exp(logarithm + error + ofTop);
    least += Math.exp(logarithm - error - ofTop);
  }
  let sumUpper = 0;
  let sumLower = 0;
  for (let j = 0; j < count; j++) {
    const logarithm = scores[j] - exact;
    sumUpper += Math.exp(logarithm + errorOf(j) - upper);
    sumLower += Math.exp(logarithm - errorOf(j) - lower);
  }
  const ofLse = Math.max(upper + Math.log(sumUpper), -lower - Math.log(sumLower)) + shared;
  return { moved, least, contends, rest, ofLse: Math.max(ofLse, 0) };
}
