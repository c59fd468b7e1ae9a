import {
  addFloat64ToDoubleDouble,
  divideDoubleDouble,
  doubleDouble,
  doubleDoubleFromRational,
  doubleDoubleFromSum,
  multiplyDoubleDouble,
  multiplyDoubleDoubleByFloat64,
  addDoubleDouble,
  productError,
  scaledIntegerOf,
  sumError,
  type DoubleDouble,
} from '../../src/arith/index.js';
import { lazily } from '../../src/lazily.js';
import { doubleDoubleExp2, doubleDoubleExp2Error } from '../exp2.js';
import { ln2, log2e, naturalLogarithmOfNumber } from '../fixed-point.js';
import { exactScores, type ScoreConstants } from './scores.js';
import type { ScoreLaw } from '../../src/problem/index.js';
import type { Row, RowResult } from './row.js';
import { largestExponent } from './tile-level.js';

const u = 2 ** -53;

/** Beyond this error of an exponent exp(x) − 1 is no longer x to within 2^-10. */
const largestExponentError = 2 ** -12;

/** Weights below this share of the largest are dropped. */
const droppedExponent = -1000;

/** Absolute error of tanh = (2^w − 1)/(2^w + 1) in double-double: 2^-101 from 2^w, 24u² from the rest. */
const tanhError = 2 ** -98;

/** Above this |w| the tanh is ±1 to within 2^-127. */
const largestTanhExponent = 128;

/** ln 2 and log2 e in double-double arithmetic, rounded. */
const logarithms = lazily(() => {
  const bits = 200;
  const one = 1n << BigInt(bits);
  return {
    ln2: doubleDoubleFromRational(ln2(bits), one),
    log2e: doubleDoubleFromRational(log2e(bits), one),
  };
});

/** The exponents of a row's keys, score · log2 e, as offsets from one of them. */
interface Exponents {
  /** Of each visible key, above `origin`; infinite where it overflows on the way. */
  readonly y: readonly DoubleDouble[];
  /** A bound on the error of each y. */
  readonly error: number;
  /** The score, in natural units, from which the exponents count: exact but for its own rounding. */
  readonly origin: DoubleDouble;
}

/** A sum of products kept as a rounded sum and the sum of its rounding errors. */
function compensatedDot(
  a: Float64Array,
  b: Float64Array,
  bStart: number,
  length: number,
): DoubleDouble {
  let sum = 0;
  let errors = 0;
  for (let t = 0; t < length; t++) {
    const x = a[t];
    const y = b[bStart + t];
    const product = x * y;
    const next = sum + product;
    errors += productError(x, y, product) + sumError(sum, product, next);
    sum = next;
  }
  return doubleDoubleFromSum(sum, errors);
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

/** Exponents from compensated dot products, for scores of ordinary size. */
function compensatedExponents(row: Row, law: ScoreLaw, constants: ScoreConstants): Exponents {
  const { qkDim, queryNorm, visible } = row;
  const factor = { high: constants.factorHigh, low: constants.factorLow };
  const capFactor = { high: constants.capFactorHigh, low: constants.capFactorLow };
  let keyNorm = 0;
  let largest = 0;
  const y = Array.from(visible, (key, j) => {
    const sign = row.infinite[j];
    if (sign !== 0) return multiplyDoubleDoubleByFloat64(factor, sign);
    keyNorm = Math.max(keyNorm, row.keyNorms[key]);
    const score = compensatedDot(row.query, row.keys, key * qkDim, qkDim);
    if (law.softcap === null) {
      const exponent = multiplyDoubleDouble(score, factor);
      largest = Math.max(largest, Math.abs(exponent.high));
      return Number.isNaN(exponent.high) ? doubleDouble(Infinity) : exponent;
    }
    return cappedExponent(multiplyDoubleDouble(score, capFactor), factor);
  });
  // Ogita, Rump and Oishi's compensated dot product: (d + 1)·2d·u² of Σ|q k| and a little more.
  const dotError = 2.1 * (qkDim + 1) ** 2 * u ** 2 * queryNorm * keyNorm + qkDim * 2 ** -1070;
  const scale = Math.abs(law.scale) * 1.4427;
  const cap = law.softcap ?? 0;
  const capError = cap * 1.4427 * (tanhError + 10 * u ** 2);
  // The words of the constants lose bits below 2^-1074; so do the products with them.
  const underflow = (queryNorm * keyNorm * (1 + cap) + 1) * 2 ** -1070;
  return {
    y,
    error: scale * dotError + 10 * u ** 2 * largest + capError + underflow,
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
function exactExponents(row: Row, law: ScoreLaw, constants: ScoreConstants): Exponents {
  const factor = { high: constants.factorHigh, low: constants.factorLow };
  const { integers, exponent } = exactScores(row, law);
  const rational = (numerator: bigint, denominator = 1n, shift = exponent) =>
    shift >= 0
      ? doubleDoubleFromRational(numerator << BigInt(shift), denominator)
      : doubleDoubleFromRational(numerator, denominator << BigInt(-shift));
  const { log2e } = logarithms();
  if (law.softcap !== null) {
    const cap = scaledIntegerOf(law.softcap);
    const y = integers.map((score, j) => {
      const sign = row.infinite[j];
      if (sign !== 0) return multiplyDoubleDoubleByFloat64(factor, sign);
      const ratio = rational(2n * score, cap.integer, exponent - cap.exponent);
      // An infinite ratio is far beyond the cap.
      const w = Number.isFinite(ratio.high)
        ? multiplyDoubleDouble(ratio, log2e)
        : doubleDouble(Math.sign(ratio.high) * 2 * largestTanhExponent);
      return cappedExponent(w, factor);
    });
    const error = law.softcap * 1.4427 * (tanhError + 2 ** 12 * u ** 2) + 2 ** -1000;
    return { y, error, origin: doubleDouble(0) };
  }
  const largest = integers.reduce((a, b) => (b > a ? b : a));
  const y = integers.map((score) => {
    const below = multiplyDoubleDouble(rational(score - largest), log2e);
    return below.high > 2 * droppedExponent ? below : doubleDouble(2 * droppedExponent);
  });
  return { y, error: 2 ** -90, origin: rational(largest) };
}

/** How the double-double level comes to its dot products, from the faster way to the exact one. */
export const dotProducts = ['compensated', 'exact'] as const;
/** One of {@link dotProducts}. */
type DotProducts = (typeof dotProducts)[number];

/**
 * One row in double-double arithmetic with a proven radius: compensated or exact dot products, weights
 * to 2^-100, compensated sums. A row outside the range of the analysis comes back with an infinite or
 * NaN radius.
 */
export function doubleDoubleLevel(
  row: Row,
  law: ScoreLaw,
  constants: ScoreConstants,
  dots: DotProducts = 'compensated',
): RowResult {
  const { vDim, visible } = row;
  const exponents = dots === 'exact' ? exactExponents : compensatedExponents;
  const { y, error, origin } = exponents(row, law, constants);
  const out = new Float64Array(vDim);
  const outRadius = new Float64Array(vDim);
  const magnitude = new Float64Array(vDim);
  const maximum = y.reduce((a, b) => Math.max(a, b.high), -Infinity);
  const inRange = ({ high }: DoubleDouble) => Math.abs(high) <= largestExponent;
  if (!(y.every(inRange) && Number.isFinite(origin.high))) {
    outRadius.fill(Infinity);
    return { out, outRadius, magnitude, lse: 0, lseRadius: Infinity, maximum: 0 };
  }
  const reference = Math.round(maximum);
  const errors = new Float64Array(vDim);
  const largestValue = new Float64Array(vDim);
  let total = 0;
  let totalErrors = 0;
  visible.forEach((key, j) => {
    const { fraction, exponent } = doubleDoubleExp2(y[j]);
    const shift = exponent - reference;
    const power = shift < droppedExponent ? 0 : 2 ** shift;
    const high = fraction.high * power;
    const low = fraction.low * power;
    const nextTotal = total + high;
    totalErrors += sumError(total, high, nextTotal) + low;
    total = nextTotal;
    for (let c = 0, at = key * vDim; c < vDim; c++, at++) {
      const v = row.values[at];
      largestValue[c] = Math.max(largestValue[c], Math.abs(v));
      const product = high * v;
      const sum = out[c];
      const next = sum + product;
      errors[c] += productError(high, v, product) + sumError(sum, product, next) + low * v;
      magnitude[c] += Math.abs(product);
      out[c] = next;
    }
  });
  const n = visible.length;
  const denominator = doubleDoubleFromSum(total, totalErrors);
  const weightError =
    error <= largestExponentError
      ? (Math.LN2 * error + doubleDoubleExp2Error) * (1 + 2 ** -10)
      : Infinity;
  const sumRoundoff = 3.1 * (n + 2) ** 2 * u ** 2;
  const relative = 2 * (weightError + sumRoundoff) + 32 * u ** 2;
  for (let c = 0; c < vDim; c++) {
    const quotient = divideDoubleDouble(doubleDoubleFromSum(out[c], errors[c]), denominator);
    out[c] = quotient.high;
    magnitude[c] = magnitude[c] / total;
    const floor = (n * (2 ** -999 * largestValue[c] + 2 ** -1065) * 2) / total;
    outRadius[c] =
      largestValue[c] === 0
        ? 0
        : relative * (1 + 2 ** -10) * magnitude[c] + u * Math.abs(quotient.high) + floor;
  }
  const logarithm = naturalLogarithmOfNumber(denominator.high);
  const lse = addDoubleDouble(
    origin,
    addFloat64ToDoubleDouble(
      multiplyDoubleDoubleByFloat64(logarithms().ln2, reference),
      logarithm.value + denominator.low / denominator.high,
    ),
  ).high;
  return {
    out,
    outRadius,
    magnitude,
    lse,
    // One rounding of the LSE itself; those of its parts are of the double-double's own size.
    lseRadius:
      relative +
      logarithm.radius +
      1.5 * u * Math.abs(lse) +
      4 * u * Math.abs(logarithm.value) +
      u ** 2,
    maximum: origin.high + maximum * Math.LN2,
  };
}
