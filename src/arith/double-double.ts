import { productError } from './two-product.js';
import { fastSumError, orderedSumError } from './two-sum.js';

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
 * The exact product of two fp64 values as a double-double (2Prod); error 0 in the domain of
 * `isProductErrorExact`.
 */
export function doubleDoubleFromProduct(a: number, b: number): DoubleDouble {
  const high = a * b;
  return { high, low: Number.isFinite(high) ? productError(a, b, high) : 0 };
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

/** |x|, exactly; the sign is that of high, which no normalised low word can outweigh. */
export function absoluteDoubleDouble(x: DoubleDouble): DoubleDouble {
  return x.high < 0 || Object.is(x.high, -0) ? negateDoubleDouble(x) : x;
}

/**
 * The order of two normalised double-doubles: −1 for x < y, 0 for equal (the zeros are equal), 1 for
 * x > y; NaN when either is NaN. Exact.
 */
export function compareDoubleDouble(x: DoubleDouble, y: DoubleDouble): number {
  if (x.high < y.high) return -1;
  if (x.high > y.high) return 1;
  if (x.high !== y.high) return NaN;
  return x.low < y.low ? -1 : x.low > y.low ? 1 : 0;
}
