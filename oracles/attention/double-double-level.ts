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
  sumError,
  type DoubleDouble,
} from '../../src/arith/index.js';
import { lazily } from '../../src/lazily.js';
import { doubleDoubleExp2, doubleDoubleExp2Error } from '../double-double-exp2.js';
import { ln2 } from '../fixed-point.js';
import { naturalLogarithmOfNumber } from '../logarithm.js';
import type { Row, RowResult, ScoreLaw } from './row.js';
import type { ScoreConstants } from './score-constants.js';

const u = 2 ** -53;

/** As in the fp64 level: beyond this a row goes to the arbitrary level. */
const largestExponent = 2 ** 40;

/** Beyond this error of an exponent exp(x) − 1 is no longer x to within 2^-10. */
const largestExponentError = 2 ** -12;

/** Weights below this share of the largest are dropped. */
const droppedExponent = -1000;

/** Absolute error of tanh = (2^w − 1)/(2^w + 1) in double-double: 2^-101 from 2^w, 24u² from the rest. */
const tanhError = 2 ** -98;

/** Above this |w| the tanh is ±1 to within 2^-127. */
const largestTanhExponent = 128;

/** ln 2 in double-double arithmetic, rounded. */
const doubleDoubleLn2 = lazily(() => {
  const bits = 200;
  return doubleDoubleFromRational(ln2(bits), 1n << BigInt(bits));
});

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
    const x = a[t]!;
    const y = b[bStart + t]!;
    const product = x * y;
    const next = sum + product;
    errors += productError(x, y, product) + sumError(sum, product, next);
    sum = next;
  }
  return doubleDoubleFromSum(sum, errors);
}

/** Upper bound on the Euclidean norm of `length` elements from `start`. */
function norm(a: Float64Array, start: number, length: number): number {
  let sum = 0;
  for (let t = start; t < start + length; t++) sum += a[t]! ** 2;
  return Math.sqrt(sum) * (1 + 2 ** -40) + length * 2 ** -530;
}

/**
 * Exponents y = score · log2 e of a row and a bound on the error of each. An exponent that overflows
 * on the way is infinite.
 */
function exponents(
  row: Row,
  law: ScoreLaw,
  constants: ScoreConstants,
): { readonly y: DoubleDouble[]; readonly error: number } {
  const { qkDim, visible } = row;
  const factor = { high: constants.factorHigh, low: constants.factorLow };
  const capFactor = { high: constants.capFactorHigh, low: constants.capFactorLow };
  const queryNorm = norm(row.query, 0, qkDim);
  const one = doubleDouble(1);
  const minusOne = doubleDouble(-1);
  let keyNorm = 0;
  let largest = 0;
  const y = Array.from(visible, (key, j) => {
    const sign = row.infinite[j]!;
    if (sign !== 0) return multiplyDoubleDoubleByFloat64(factor, sign);
    keyNorm = Math.max(keyNorm, norm(row.keys, key * qkDim, qkDim));
    const score = compensatedDot(row.query, row.keys, key * qkDim, qkDim);
    if (law.softcap === null) {
      const exponent = multiplyDoubleDouble(score, factor);
      largest = Math.max(largest, Math.abs(exponent.high));
      return Number.isNaN(exponent.high) ? doubleDouble(Infinity) : exponent;
    }
    const w = multiplyDoubleDouble(score, capFactor);
    if (!Number.isFinite(w.high)) return doubleDouble(Infinity);
    if (Math.abs(w.high) > largestTanhExponent)
      return multiplyDoubleDoubleByFloat64(factor, Math.sign(w.high));
    const { fraction, exponent } = doubleDoubleExp2(w);
    const power = multiplyDoubleDoubleByFloat64(fraction, 2 ** exponent);
    const tanh = divideDoubleDouble(addDoubleDouble(power, minusOne), addDoubleDouble(power, one));
    return multiplyDoubleDouble(tanh, factor);
  });
  // Ogita, Rump and Oishi's compensated dot product: (d + 1)·2d·u² of Σ|q k| and a little more.
  const dotError = 2.1 * (qkDim + 1) ** 2 * u ** 2 * queryNorm * keyNorm + qkDim * 2 ** -1070;
  const scale = Math.abs(law.scale) * 1.4427;
  const cap = law.softcap ?? 0;
  const capError = cap * 1.4427 * (tanhError + 10 * u ** 2);
  // The words of the constants lose bits below 2^-1074; so do the products with them.
  const underflow = (queryNorm * keyNorm * (1 + cap) + 1) * 2 ** -1070;
  return { y, error: scale * dotError + 10 * u ** 2 * largest + capError + underflow };
}

/**
 * One row in double-double arithmetic with a proven radius: compensated dot products, weights to
 * 2^-100, compensated sums. A row outside the range of the analysis comes back with an infinite or
 * NaN radius.
 */
export function doubleDoubleLevel(row: Row, law: ScoreLaw, constants: ScoreConstants): RowResult {
  const { vDim, visible } = row;
  const { y, error } = exponents(row, law, constants);
  const out = new Float64Array(vDim);
  const outRadius = new Float64Array(vDim);
  const magnitude = new Float64Array(vDim);
  const maximum = y.reduce((a, b) => Math.max(a, b.high), -Infinity);
  if (y.some(({ high }) => !(Math.abs(high) <= largestExponent))) {
    outRadius.fill(Infinity);
    return { out, outRadius, magnitude, lse: 0, lseRadius: Infinity, maximum: 0 };
  }
  const reference = Math.round(maximum);
  const errors = new Float64Array(vDim);
  const largestValue = new Float64Array(vDim);
  let total = 0;
  let totalErrors = 0;
  visible.forEach((key, j) => {
    const { fraction, exponent } = doubleDoubleExp2(y[j]!);
    const shift = exponent - reference;
    const power = shift < droppedExponent ? 0 : 2 ** shift;
    const high = fraction.high * power;
    const low = fraction.low * power;
    const nextTotal = total + high;
    totalErrors += sumError(total, high, nextTotal) + low;
    total = nextTotal;
    for (let c = 0, at = key * vDim; c < vDim; c++, at++) {
      const v = row.values[at]!;
      largestValue[c] = Math.max(largestValue[c]!, Math.abs(v));
      const product = high * v;
      const sum = out[c]!;
      const next = sum + product;
      errors[c]! += productError(high, v, product) + sumError(sum, product, next) + low * v;
      magnitude[c]! += Math.abs(product);
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
    const quotient = divideDoubleDouble(doubleDoubleFromSum(out[c]!, errors[c]!), denominator);
    out[c] = quotient.high;
    magnitude[c] = magnitude[c]! / total;
    const floor = (n * (2 ** -999 * largestValue[c]! + 2 ** -1065) * 2) / total;
    outRadius[c] =
      largestValue[c] === 0
        ? 0
        : relative * (1 + 2 ** -10) * magnitude[c]! + u * Math.abs(quotient.high) + floor;
  }
  const logarithm = naturalLogarithmOfNumber(denominator.high);
  const lse = addFloat64ToDoubleDouble(
    multiplyDoubleDoubleByFloat64(doubleDoubleLn2(), reference),
    logarithm.value + denominator.low / denominator.high,
  ).high;
  return {
    out,
    outRadius,
    magnitude,
    lse,
    lseRadius:
      relative + logarithm.radius + 4 * u * (Math.abs(lse) + Math.abs(logarithm.value)) + u ** 2,
    maximum: maximum * Math.LN2,
  };
}
