import { isProductErrorExact, orderedSumError, productError } from './error-free.js';

/** Between half an ulp and one ulp and a half of any number, as a fraction of it: 0.625·2^−52. */
const nudge = 0.625 * Number.EPSILON;

/** Below 2^−1021 the gap between neighbours is the smallest subnormal. */
const evenlySpaced = 2 ** -1021;
/** From here up the product with `nudge` is a normal number. */
const nudgeIsNormal = 2 ** -960;
const scale = 2 ** 100;

/**
 * The smallest fp64 value greater than value: IEEE 754-2019 nextUp.
 *
 * +∞ gives +∞, −∞ the most negative finite value, NaN gives NaN, the smallest negative subnormal
 * gives −0, and either zero the smallest positive subnormal.
 */
export function nextUpFloat64(value: number): number {
  const magnitude = Math.abs(value);
  if (magnitude >= nudgeIsNormal) {
    return value === -Infinity ? -Number.MAX_VALUE : value + magnitude * nudge;
  }
  if (magnitude >= evenlySpaced) {
    return (value * scale + magnitude * scale * nudge) / scale;
  }
  return value === -Number.MIN_VALUE ? -0 : value + Number.MIN_VALUE;
}

/** The largest fp64 value less than value: IEEE 754-2019 nextDown, the mirror of `nextUpFloat64`. */
export function nextDownFloat64(value: number): number {
  return -nextUpFloat64(-value);
}

/**
 * a + b rounded up: the smallest fp64 value that is not below the exact sum.
 *
 * Any signs. Overflow gives +∞ above and the most negative finite value below; infinite and NaN
 * operands behave as in a + b. An exact zero sum carries the sign that a + b gives it.
 */
export function addUp(a: number, b: number): number {
  const sum = a + b;
  if (sum === -Infinity) return a === -Infinity || b === -Infinity ? sum : -Number.MAX_VALUE;
  return orderedSumError(a, b, sum) > 0 ? nextUpFloat64(sum) : sum;
}

/**
 * An upper bound on a·b: the exact product rounded up to fp64 where `isProductErrorExact` holds, and
 * at most one ulp above that elsewhere.
 *
 * Any signs. Overflow gives +∞ above and the most negative finite value below; infinite and NaN
 * operands behave as in a · b, so that 0 · ∞ is NaN and never a bound.
 */
export function multiplyUp(a: number, b: number): number {
  const product = a * b;
  if (isProductErrorExact(a, b, product)) {
    return productError(a, b, product) > 0 ? nextUpFloat64(product) : product;
  }
  return isInfinite(a) || isInfinite(b) ? product : nextUpFloat64(product);
}

/**
 * An upper bound on a / b: the exact quotient rounded up to fp64 where the product of b and the
 * rounded quotient satisfies `isProductErrorExact`, and at most one ulp above that elsewhere.
 *
 * Any signs. Overflow gives +∞ above and the most negative finite value below; zero, infinite and
 * NaN operands behave as in a / b, so that 0 / 0 and ∞ / ∞ are NaN and never bounds.
 */
export function divideUp(a: number, b: number): number {
  const quotient = a / b;
  if (a === 0 || b === 0 || isInfinite(a) || isInfinite(b)) return quotient;
  const product = quotient * b;
  if (quotient === 0 || !isProductErrorExact(quotient, b, product)) return nextUpFloat64(quotient);
  // a − product is exact (Sterbenz), so the remainder's sign survives the last rounding.
  const remainder = a - product - productError(quotient, b, product);
  return (b > 0 ? remainder > 0 : remainder < 0) ? nextUpFloat64(quotient) : quotient;
}

function isInfinite(value: number): boolean {
  return Math.abs(value) === Infinity;
}
