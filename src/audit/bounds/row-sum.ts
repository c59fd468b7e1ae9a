import type { KernelArithmetic } from './kernel-arithmetic.js';
import type { TechniqueBound } from './technique-bound.js';

/**
 * What adding the weights of a tile to the row sum may lose, relative to the sum after it. Every
 * addition rounds a partial sum, none of which exceeds it. Theorem 8 of docs/bounds.md.
 *
 * @param keys of the tile
 * @param endsBlock where the kernel adds by blocks, their additions count at the block's last tile
 */
export function rowSumLoss(
  { rowSumAdditions, rowSumAddition }: KernelArithmetic,
  keys: number,
  endsBlock: boolean,
): number {
  if (rowSumAdditions > 0) return endsBlock ? rowSumAdditions * rowSumAddition : 0;
  return keys * rowSumAddition;
}

export const rowSumBound: TechniqueBound = {
  elements:
    ({ errors: { rowSum } }) =>
    ({ size }) =>
      rowSum * size,
  lse: ({ errors }) => errors.rowSum,
};
