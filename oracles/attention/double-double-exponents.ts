import {
  addDoubleDouble,
  divideDoubleDouble,
  doubleDouble,
  doubleDoubleFromRational,
  doubleDoubleFromSum,
  multiplyDoubleDouble,
  multiplyDoubleDoubleByFloat64,
  productError,
  scaledIntegerOf,
  sumError,
  type DoubleDouble,
} from '../../src/arith/index.js';
import type { ScoreLaw } from '../../src/problem/index.js';
import { doubleDoubleExp2 } from '../exp2.js';
import { log2eWords } from './logarithm-words.js';
import { operandRow } from './operand.js';
import type { Row } from './row.js';
import { exactScores, type ScoreConstants } from './scores.js';

const u = 2 ** -53;

/** Absolute error of tanh = (2^w − 1)/(2^w + 1) in double-double: 2^-101 from 2^w, 24u² from the rest. */
const tanhError = 2 ** -98;

/** The |w| above which the tanh is ±1 to within 2^-127. */
const largestTanhExponent = 128;

/** Weights below this share of the largest are dropped, as a power of 2. */
export const droppedExponent = -1000;

/** The exponents of a row's keys, score · log2 e, as offsets from one of them. */
export interface Exponents {
  /** Exponent of each visible key, above `origin`; infinite where it overflows on the way. */
  readonly y: readonly DoubleDouble[];
  /** A bound on the error of each y. */
  readonly error: number;
  /** The score, in natural units, from which the exponents count: exact but for its own rounding. */
  readonly origin: DoubleDouble;
}

/** A sum of products kept as a rounded sum and the sum of its rounding errors: see `compensatedDotError`. */
export function compensatedDot(a: Float64Array, b: Float64Array): DoubleDouble {
  let sum = 0;
  let errors = 0;
  for (let t = 0; t < a.length; t++) {
    const x = a[t];
    const y = b[t];
    const product = x * y;
    const next = sum + product;
    errors += productError(x, y, product) + sumError(sum, product, next);
    sum = next;
  }
  return doubleDoubleFromSum(sum, errors);
}

/**
 * A bound on the error of a compensated dot product (Ogita, Rump and Oishi's): (d + 1)·2d·u² of the sum of sizes and a
 * little more.
 * @param size at least Σ|a b|
 */
export function compensatedDotError(dim: number, size: number): number {
  return 2.1 * (dim + 1) ** 2 * u ** 2 * size + dim * 2 ** -1070;
}

/** y = factor · tanh for tanh(x / cap) = (2^w − 1)/(2^w + 1), within `tanhError` of the factor. */
function cappedExponent(w: DoubleDouble, factor: DoubleDouble): DoubleDouble {
  if (!Number.isFinite(w.high)) return doubleDouble(Infinity);
  if (Math.abs(w.high) > largestTanhExponent)
    return multiplyDoubleDoubleByFloat64(factor, Math.sign(w.high));
  const { fraction, exponent } = doubleDoubleExp2(w);
  const power = multiplyDoubleDoubleByFloat64(fraction, 2 ** exponent);
  const tanh = divideDoubleDouble(
    addDoubleDouble(power, doubleDouble(-1)),
    addDoubleDouble(power, doubleDouble(1)),
  );
  return multiplyDoubleDouble(tanh, factor);
}

/** Exponents with the addends of the scores, and a bound on the error of the sum. */
function withAddends(
  y: readonly DoubleDouble[],
  { addends, addendRests }: Row,
): { readonly y: readonly DoubleDouble[]; readonly error: number } {
  if (addends === null) return { y, error: 0 };
  // Of the addend's part: the constant u², the product 3/2 u²; of each sum 3u².
  let size = 0;
  const sums = y.map((exponent, j) => {
    const added = multiplyDoubleDoubleByFloat64(log2eWords(), addends[j]);
    size = Math.max(size, Math.abs(exponent.high) + Math.abs(added.high));
    const sum = addDoubleDouble(exponent, added);
    if (addendRests === null) return sum;
    return addDoubleDouble(sum, multiplyDoubleDoubleByFloat64(log2eWords(), addendRests[j]));
  });
  return { y: sums, error: 10 * u ** 2 * size + 2 ** -1060 };
}

/** Exponents from compensated dot products, for scores of ordinary size. */
export function compensatedExponents(
  row: Row,
  law: ScoreLaw,
  constants: ScoreConstants,
): Exponents {
  const { keys, queryNorm, visible } = row;
  const { dim } = keys;
  const factor = { high: constants.factorHigh, low: constants.factorLow };
  const capFactor = { high: constants.capFactorHigh, low: constants.capFactorLow };
  let keyNorm = 0;
  let largest = 0;
  const ofScores = Array.from(visible, (key, j) => {
    const sign = row.infinite[j];
    if (sign !== 0) return multiplyDoubleDoubleByFloat64(factor, sign);
    keyNorm = Math.max(keyNorm, keys.norm[key]);
    const score = compensatedDot(row.query, operandRow(keys, key));
    if (law.softcap === null) {
      const exponent = multiplyDoubleDouble(score, factor);
      largest = Math.max(largest, Math.abs(exponent.high));
      return Number.isNaN(exponent.high) ? doubleDouble(Infinity) : exponent;
    }
    return cappedExponent(multiplyDoubleDouble(score, capFactor), factor);
  });
  const { y, error: addedError } = withAddends(ofScores, row);
  const dotError = compensatedDotError(dim, queryNorm * keyNorm);
  const scale = Math.abs(law.scale) * 1.4427;
  const cap = law.softcap ?? 0;
  const capError = cap * 1.4427 * (tanhError + 10 * u ** 2);
  // The words of the constants lose bits below 2^-1074; so do the products with them.
  const underflow = (queryNorm * keyNorm * (1 + cap) + 1) * 2 ** -1070;
  return {
    y,
    error: scale * dotError + 10 * u ** 2 * largest + capError + underflow + addedError,
    origin: doubleDouble(0),
  };
}

/**
 * Exponents from exact dot products. Without a softcap each is the difference of its exact score from
 * the row's largest, so that scores of any size lose nothing: errors are relative to the difference,
 * 2u² for rounding it and the constant and 7u² for their product. Differences beyond the weights that
 * are kept are cut short. With a softcap |w| ≤ 128 has the error of 9u²·128, and the slope of the
 * capped exponent in w is at most half the factor.
 */
export function exactExponents(row: Row, law: ScoreLaw, constants: ScoreConstants): Exponents {
  const factor = { high: constants.factorHigh, low: constants.factorLow };
  const { integers, exponent } = exactScores(row, law);
  const rational = (numerator: bigint, denominator = 1n, shift = exponent) =>
    shift >= 0
      ? doubleDoubleFromRational(numerator << BigInt(shift), denominator)
      : doubleDoubleFromRational(numerator, denominator << BigInt(-shift));
  const log2e = log2eWords();
  if (law.softcap !== null) {
    const cap = scaledIntegerOf(law.softcap);
    const capped = integers.map((score, j) => {
      const sign = row.infinite[j];
      if (sign !== 0) return multiplyDoubleDoubleByFloat64(factor, sign);
      const ratio = rational(2n * score, cap.integer, exponent - cap.exponent);
      // An infinite ratio is far beyond the cap.
      const w = Number.isFinite(ratio.high)
        ? multiplyDoubleDouble(ratio, log2e)
        : doubleDouble(Math.sign(ratio.high) * 2 * largestTanhExponent);
      return cappedExponent(w, factor);
    });
    const { y, error: addedError } = withAddends(capped, row);
    const error = law.softcap * 1.4427 * (tanhError + 2 ** 12 * u ** 2) + 2 ** -1000;
    return { y, error: error + addedError, origin: doubleDouble(0) };
  }
  const largest = integers.reduce((a, b) => (b > a ? b : a));
  const y = integers.map((score) => {
    const below = multiplyDoubleDouble(rational(score - largest), log2e);
    return below.high > 2 * droppedExponent ? below : doubleDouble(2 * droppedExponent);
  });
  return { y, error: 2 ** -90, origin: rational(largest) };
}
