import { fastSumError, orderedSumError, productError, sumError } from './error-free.js';
import { float64FromRational, rationalOfFloat64 } from './rational.js';

/**
 * An unevaluated sum high + low of two fp64 values, about 106 bits of significand: the
 * "double-word number" of Joldeş, Muller and Popescu, "Tight and rigorous error bounds for basic
 * building blocks of double-word arithmetic", ACM TOMS 44(2), 2017. Normalised: high is the sum
 * rounded to nearest even. An infinity or NaN sits in high with low zero.
 *
 * The error bounds stated with the operations are relative to the exact result, with u = 2^−53.
 * They hold while no operation inside overflows or underflows: products and quotients must keep
 * every |high| that is not zero between 2^−916 and 2^995 (operands, products, quotients), so that
 * the last bit of each low word is still above the smallest subnormal. Sums cannot underflow.
 */
export interface DoubleDouble {
  readonly high: number;
  readonly low: number;
}

/** The double-double equal to an fp64 value: exact; any value, specials included. */
export function doubleDouble(value: number): DoubleDouble {
  return { high: value, low: 0 };
}

/**
 * The exact sum of two fp64 values as a double-double (2Sum); error 0 unless the sum overflows to an
 * infinity.
 */
export function doubleDoubleFromSum(a: number, b: number): DoubleDouble {
  const high = a + b;
  return { high, low: Number.isFinite(high) ? orderedSumError(a, b, high) : 0 };
}

/**
 * The double-double nearest to numerator / denominator word by word: high is the fraction rounded to
 * nearest even and low the rest rounded to nearest even, so the relative error is at most u²
 * (u = 2^−53) while low is not subnormal. Overflow gives an infinity. Throws a RequestError when the
 * denominator is zero.
 */
export function doubleDoubleFromRational(numerator: bigint, denominator: bigint): DoubleDouble {
  const high = float64FromRational(numerator, denominator);
  if (!Number.isFinite(high)) return doubleDouble(high);
  const rounded = rationalOfFloat64(high);
  const rest = numerator * rounded.denominator - rounded.numerator * denominator;
  return { high, low: float64FromRational(rest, denominator * rounded.denominator) };
}

/**
 * The double-double high + low for |high| ≥ |low| or high zero (Fast2Sum): exact, renormalised.
 * The step that ends each operation.
 */
export function normalizedDoubleDouble(high: number, low: number): DoubleDouble {
  const sum = high + low;
  return { high: sum, low: Number.isFinite(sum) ? fastSumError(high, low, sum) : 0 };
}

/** −x, exactly. */
export function negateDoubleDouble(x: DoubleDouble): DoubleDouble {
  return { high: -x.high, low: -x.low };
}

/**
 * x + y, relative error at most 3u² + 13u³ (u = 2^−53), cancellation included.
 *
 * Algorithm 6 (AccurateDWPlusDW, first in Li et al. 2002) of Joldeş, Muller and Popescu 2017; the
 * bound as corrected and machine-checked by Muller and Rideau, "Formalization of double-word
 * arithmetic", ACM TOMS 48(1), 2022. Infinities and NaN as in fp64 addition.
 */
export function addDoubleDouble(x: DoubleDouble, y: DoubleDouble): DoubleDouble {
  const highSum = x.high + y.high;
  if (!Number.isFinite(highSum)) return doubleDouble(highSum);
  const highSumError = sumError(x.high, y.high, highSum);
  const lowSum = x.low + y.low;
  const lowSumError = sumError(x.low, y.low, lowSum);
  const carry = highSumError + lowSum;
  const high = highSum + carry;
  if (!Number.isFinite(high)) return doubleDouble(high);
  const low = lowSumError + fastSumError(highSum, carry, high);
  return normalizedDoubleDouble(high, low);
}

/** x − y, relative error at most 3u² + 13u³: `addDoubleDouble` of x and −y. */
export function subtractDoubleDouble(x: DoubleDouble, y: DoubleDouble): DoubleDouble {
  return addDoubleDouble(x, negateDoubleDouble(y));
}

/**
 * x + y for an fp64 y, relative error at most 2u² (u = 2^−53), cancellation included.
 *
 * Algorithm 4 (DWPlusFP) of Joldeş, Muller and Popescu 2017. Infinities and NaN as in fp64 addition.
 */
export function addFloat64ToDoubleDouble(x: DoubleDouble, y: number): DoubleDouble {
  const highSum = x.high + y;
  if (!Number.isFinite(highSum)) return doubleDouble(highSum);
  return normalizedDoubleDouble(highSum, x.low + sumError(x.high, y, highSum));
}

/**
 * x·y, relative error at most 5u² (u = 2^−53) within the range stated with `DoubleDouble`.
 *
 * Algorithm 10 (DWTimesDW1, which needs no fused multiply-add) of Joldeş, Muller and Popescu 2017,
 * who prove 7u²; lowered to 5u² for round-to-nearest-even by Muller and Rideau, "Formalization of
 * double-word arithmetic", ACM TOMS 48(1), 2022. Infinities, NaN and zeros as in fp64.
 */
export function multiplyDoubleDouble(x: DoubleDouble, y: DoubleDouble): DoubleDouble {
  const product = x.high * y.high;
  if (product === 0 || !Number.isFinite(product)) return doubleDouble(product);
  const crossTerms = x.high * y.low + x.low * y.high;
  return normalizedDoubleDouble(product, productError(x.high, y.high, product) + crossTerms);
}

/**
 * x·y for an fp64 y, relative error at most 3/2 u² + 4u³ (u = 2^−53) within the range stated with
 * `DoubleDouble`.
 *
 * Algorithm 7 (DWTimesFP1) of Joldeş, Muller and Popescu 2017. Infinities, NaN and zeros as in fp64.
 */
export function multiplyDoubleDoubleByFloat64(x: DoubleDouble, y: number): DoubleDouble {
  const product = x.high * y;
  if (product === 0 || !Number.isFinite(product)) return doubleDouble(product);
  const lowProduct = x.low * y;
  const high = product + lowProduct;
  if (!Number.isFinite(high)) return doubleDouble(high);
  const low = fastSumError(product, lowProduct, high) + productError(x.high, y, product);
  return normalizedDoubleDouble(high, low);
}

/**
 * x / y, relative error at most 15u² + 56u³ (u = 2^−53) within the range stated with `DoubleDouble`.
 *
 * Algorithm 17 (DWDivDW2, which needs no fused multiply-add) of Joldeş, Muller and Popescu 2017.
 * Infinities, NaN and zeros as in fp64.
 */
export function divideDoubleDouble(x: DoubleDouble, y: DoubleDouble): DoubleDouble {
  const quotient = x.high / y.high;
  if (isFinal(quotient, y.high)) return doubleDouble(quotient);
  const product = multiplyDoubleDoubleByFloat64(y, quotient);
  const remainder = x.high - product.high + (x.low - product.low);
  return normalizedDoubleDouble(quotient, remainder / y.high);
}

/**
 * x / y for an fp64 y, relative error at most 3u² (u = 2^−53) within the range stated with
 * `DoubleDouble`.
 *
 * Algorithm 15 (DWDivFP3) of Joldeş, Muller and Popescu 2017. Infinities, NaN and zeros as in fp64.
 */
export function divideDoubleDoubleByFloat64(x: DoubleDouble, y: number): DoubleDouble {
  const quotient = x.high / y;
  if (isFinal(quotient, y)) return doubleDouble(quotient);
  const product = quotient * y;
  const remainder = x.high - product + (x.low - productError(quotient, y, product));
  return normalizedDoubleDouble(quotient, remainder / y);
}

/** √x, relative error about 2^−100; NaN below zero. */
export function squareRootDoubleDouble(x: DoubleDouble): DoubleDouble {
  const root = Math.sqrt(x.high);
  if (!(root > 0 && Number.isFinite(root))) return doubleDouble(root);
  const square = multiplyDoubleDoubleByFloat64(doubleDouble(root), root);
  const rest = subtractDoubleDouble(x, square);
  return doubleDoubleFromSum(root, rest.high / (2 * root));
}

/** Whether the fp64 quotient is the whole answer: zero, infinite, NaN, or a divisor of ±∞. */
function isFinal(quotient: number, divisor: number): boolean {
  return quotient === 0 || !Number.isFinite(quotient) || !Number.isFinite(divisor);
}
