import { doubleDouble, normalizedDoubleDouble, type DoubleDouble } from './double-double.js';
import { multiplyDoubleDoubleByFloat64 } from './double-double-multiply.js';
import { productError } from './two-product.js';

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

/** Whether the fp64 quotient is the whole answer: zero, infinite, NaN, or a divisor of ±∞. */
function isFinal(quotient: number, divisor: number): boolean {
  return quotient === 0 || !Number.isFinite(quotient) || !Number.isFinite(divisor);
}
