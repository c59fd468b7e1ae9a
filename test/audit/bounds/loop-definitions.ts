import {
  round,
  smallestNormal,
  smallestSubnormal,
  ulp,
  type NumberFormat,
} from '../../../src/formats/index.js';
import type { ScoreError } from '../../../src/audit/bounds/scores.js';

/**
 * Definitions of what the WebAssembly loops of assembly/ compute: for one query and one key, for a row, for
 * an element. The loops work on tiles, two lanes at a time, and deviate from these by some 2^-44.
 * docs/theory/bounds.md derives the numbers; the numbers of its theorems are named below.
 */

/**
 * q·k as a chain of sums of `step` products, and Σ |partial sum| over its sums, which the error of the chain is
 * relative to (Theorem 2): `chainProduct`.
 */
export function chainedDot(
  q: ArrayLike<number>,
  k: ArrayLike<number>,
  step: number,
): { readonly sum: number; readonly partials: number } {
  let sum = 0;
  let partials = 0;
  for (let t = 0; t < q.length; t++) {
    sum += q[t] * k[t];
    if ((t + 1) % step === 0 || t + 1 === q.length) partials += Math.abs(sum);
  }
  return { sum, partials };
}

/**
 * The largest error of a score (Theorem 2): `scoreErrors`.
 * @param partials Σ |partial sums|
 * @param products Σ of the products of both operands' units
 */
export function chainError(
  { perPartial, perUnit }: Pick<ScoreError, 'perPartial' | 'perUnit'>,
  partials: number,
  products: number,
): number {
  return perPartial * partials + perUnit * products;
}

/** One key of a row, as the weighing finds it. */
interface ScoredKey {
  /** NaN for a key that the row does not see. */
  readonly score: number;
  /** Bound on the error of its exponent, log2. */
  readonly scoreError: number;
  /** The relative error of the unit or the polynomial that computes its exponential. */
  readonly exponential: number;
}

/** Parameters that turn scores into exponents of 2: `scanScores` and `weigh` share them. */
interface Exponents {
  /** s·factor are exponents, log2. */
  readonly factor: number;
  /** The offset that the kernel's exponents count from, log2: the distance from it counts, too (Theorem 3). */
  readonly offset: number;
}

/** The largest exponent and the largest error of the scores that a row sees: `scanScores`. */
export function scanKeys(keys: readonly ScoredKey[], factor: number) {
  const seen = keys.filter(({ score }) => !Number.isNaN(score));
  return {
    largest: seen.reduce((most, { score }) => Math.max(most, score * factor), -Infinity),
    error: seen.reduce((most, { scoreError }) => Math.max(most, scoreError), 0),
  };
}

/** Parameters of a row's weights in one block of keys: its numbers in `BlockPlan`. */
interface WeighedRow {
  readonly shift: number;
  readonly gain: number;
  readonly uncertainty: number;
  readonly relative: number;
  readonly least: number;
}

/** One weight, and the effects of rounding on it, all in units of the row sum. */
interface WeighedKey {
  readonly weight: number;
  /** z of Theorem 3: the larger distance of the exponent from the maximum and from the offset. */
  readonly distance: number;
  /** The most by which the rounding of P can move it (Theorem 5). */
  readonly rounding: number;
  /** The rounding itself, signed, where no uncertainty leaves it open; else 0. */
  readonly known: number;
  /** Its mean error below the smallest normal number, unless that is known. */
  readonly bias: number;
  /** The variance that the exponential adds to it: 2w²·exponential². */
  readonly ofExponential: number;
  /** `ofExponential` plus the variance of the rounding, unless that is known; of this weight alone. */
  readonly variance: number;
}

/** A weight that the row does not see. */
const unseen: WeighedKey = {
  weight: 0,
  distance: 0,
  rounding: 0,
  known: 0,
  bias: 0,
  ofExponential: 0,
  variance: 0,
};

/**
 * A weight p·gain with p = 2^(s·factor + shift), and its rounding to the format: `weigh`.
 *
 * Theorem 5, with κ the relative uncertainty of p: the rounding moves p by at most |p − r| + κp, r being the
 * nearest number of the format, and by at most half an ulp of p(1 + κ). It is known where the first is less than
 * the second: then the resulting number is certain. Where κ is small beside the half ulp, the distance is the
 * error; else the error counts as uniform. Beyond the largest number a conversion to fp8 saturates and the whole
 * excess is lost.
 */
export function weighKey(
  { score, exponential }: ScoredKey,
  { shift, gain, uncertainty, relative, least }: WeighedRow,
  { factor, offset }: Exponents,
  format: NumberFormat,
): WeighedKey {
  if (Number.isNaN(score)) return unseen;
  const exponent = score * factor + shift;
  const p = 2 ** exponent;
  const weight = p * gain;
  const ofExponential = 2 * (weight * exponential) ** 2;
  const distance = Math.max(Math.abs(exponent), Math.abs(exponent - offset));
  if (relative > 0) {
    const moved = relative * p + least;
    return {
      weight,
      distance,
      rounding: moved * gain,
      known: 0,
      bias: Math.min(p, least) * gain,
      ofExponential,
      variance: (moved * gain) ** 2 / 3 + ofExponential,
    };
  }
  const slack = p * (uncertainty + exponential);
  const nearest = round(format, p);
  const half = ulp(format, Math.min(p + slack, format.maxFinite)) / 2;
  const near = Math.min(Math.abs(p - nearest) + slack, half);
  const isOver = p + slack > format.maxFinite;
  const moved = isOver ? Math.max(p + slack - format.maxFinite, near) : near;
  const isKnown = near < half || isOver;
  const ofRounding = slack < half / 8 ? near ** 2 : Math.min(half ** 2 / 3, near ** 2);
  // Lost; or between the first subnormals, favoured by a tenth of their distance.
  const favoured = nearest === 0 ? p : smallestSubnormal(format) / 10;
  const isBiased = !isKnown && p > 0 && p < smallestNormal(format);
  return {
    weight,
    distance,
    rounding: moved * gain,
    known: isKnown ? (Math.min(nearest, format.maxFinite) - p) * gain : 0,
    bias: isBiased ? favoured * gain : 0,
    ofExponential,
    variance: (isKnown ? 0 : ofRounding * gain ** 2) + ofExponential,
  };
}

/** e = t + t² ≥ 2^error − 1 for the error t ≤ 1 of a score in nats. */
export function weightErrorOf({ scoreError }: ScoredKey): number {
  const natural = scoreError * Math.LN2;
  return natural + natural ** 2;
}

/** The five products of one tile's weights with a column of its values: `moments`. */
export function columnMoments(keys: readonly WeighedKey[], values: ArrayLike<number>) {
  const sumOf = (term: (key: WeighedKey, v: number) => number) =>
    keys.reduce((sum, key, j) => sum + term(key, values[j]), 0);
  return {
    sum: sumOf(({ weight }, v) => weight * v),
    squares: sumOf(({ weight }, v) => weight * v * v),
    moved: sumOf(({ rounding }, v) => rounding * Math.abs(v)),
    predicted: sumOf(({ known }, v) => known * v),
    spread: sumOf(({ variance }, v) => variance * v * v),
  };
}

/** The numbers of a row that `addTile` takes: see `createWeigher`. */
interface TileTerms {
  readonly mass: number;
  readonly slack: number;
  readonly perTile: number;
  readonly floor: number;
  readonly rescale: number;
}

/**
 * The terms that one tile adds to the bounds of the accumulator of one element (Theorem 7) and of its rescale
 * (Theorem 6): `addTile`. |C| ≤ |sum| + slack·magnitude before the tile, and the tile adds M ≤ √(mass·squares).
 * @param sum the sum over the tiles before
 * @param magnitude Σ w|v| of the element
 * @param squares Σ w·v² of the tile
 */
export function accumulatorLoss(
  { mass, slack, perTile, floor, rescale }: TileTerms,
  sum: number,
  magnitude: number,
  squares: number,
): { readonly accumulated: number; readonly rescaled: number } {
  const before = Math.abs(sum) + slack * magnitude;
  return {
    accumulated: perTile * (before + Math.sqrt(mass * squares)) + floor,
    rescaled: rescale * before,
  };
}
