/**
 * The mean square of the partial sums of some terms, in any order that does not depend on them: the square of the largest that the order
 * of their indices meets, and a sixth of the terms' squares. "Sums of products" in docs/theory/bounds-backward.md.
 */
export function partialSquares(largest: number, squares: number): number {
  return largest * largest + squares / 6;
}
