import { nextUpFloat64 } from './next-float64.js';
import { isProductErrorExact, productError } from './two-product.js';
import { orderedSumError } from './two-sum.js';

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
