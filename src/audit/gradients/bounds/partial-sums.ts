import { tileRows, type TileMatrix, type TileProducts } from '../../bounds/index.js';

/** Number of terms that are added between two partial sums that are looked at. */
const stretch = 16;

/** Products of matrices of 64 rows whose partial sums are looked at. */
export interface PartialSums {
  /**
   * A·B for A of [64 × inner], B of [inner × columns], a stretch of terms at a time: `visit` is called with the sums of
   * each, [64 × columns], which the next overwrites.
   */
  readonly forEachStretch: (
    a: TileMatrix,
    b: TileMatrix,
    inner: number,
    columns: number,
    visit: (added: Float64Array) => void,
  ) => void;
}

/** Number of elements that {@link createPartialSums} takes from the memory of its products. */
export function partialSumNumbers(columns: number): number {
  return tileRows * (stretch + columns);
}

/** @param columns of a product, at most */
export function createPartialSums(
  { matrix, multiply }: TileProducts,
  columns: number,
): PartialSums {
  const left = matrix(tileRows * stretch);
  const result = matrix(tileRows * columns);
  return {
    forEachStretch: (a, b, inner, columns, visit) => {
      for (let first = 0; first < inner; first += stretch) {
        const count = Math.min(stretch, inner - first);
        for (let row = 0; row < tileRows; row++)
          for (let k = 0; k < count; k++)
            left.view[row * count + k] = a.view[row * inner + first + k];
        const right = {
          address: b.address + 8 * first * columns,
          view: b.view.subarray(first * columns),
        };
        multiply(left, right, result, count, columns);
        visit(result.view);
      }
    },
  };
}

/**
 * The mean square of the partial sums of some terms, in any order that does not depend on them: the square of the largest that the order
 * of their indices meets, and a sixth of the terms' squares. "Sums of products" in docs/theory/bounds-backward.md.
 */
export function partialSquares(largest: number, squares: number): number {
  return largest * largest + squares / 6;
}
