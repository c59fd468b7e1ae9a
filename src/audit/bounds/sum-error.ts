import { roundoff32, type SumArithmetic } from '../../../kernels/index.js';

export { roundoff32 };

/**
 * What one fused sum can lose, in units of the largest of the accumulator before, the accumulator
 * after and the largest product: each of the products and the accumulator less than one unit of the
 * alignment (truncation), the sum less than one unit of the result. Theorem 2 of docs/bounds.md.
 */
export function fusedSumLoss(arithmetic: SumArithmetic & { readonly kind: 'fused' }): number {
  const { productsPerSum, alignedFractionBits, resultFractionBits } = arithmetic;
  return (productsPerSum + 1) * 2 ** -alignedFractionBits + 2 ** -resultFractionBits;
}

/**
 * What adding `products` products to an accumulator can lose, in units of a number that exceeds every
 * accumulator on the way and every product.
 */
export function chainLoss(arithmetic: SumArithmetic, products: number): number {
  switch (arithmetic.kind) {
    case 'fused':
      return Math.ceil(products / arithmetic.productsPerSum) * fusedSumLoss(arithmetic);
    case 'sequential':
      // A rounding of the product and one of the sum for each.
      return 2 * products * roundoff32;
    case 'any-order':
      // Roundings of partial sums that carry earlier ones: below the linear order by nothing.
      return Math.expm1(products * arithmetic.perProduct);
  }
}
