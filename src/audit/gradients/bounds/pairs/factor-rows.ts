import { tileRows } from '../../../bounds/index.js';
import type { Matrix, PairKernels } from './pair-tile.js';
import type { FactorKind } from './pair-sums.js';

/** 64 rows of an operand, padded with zeros: as they are, their sizes and their squares, and the sums of these, by row. */
export interface FactorRows extends Readonly<Record<FactorKind, Matrix>> {
  readonly dim: number;
  readonly stride: number;
  readonly rowSizes: Matrix;
  readonly rowSquares: Matrix;
}

/** The columns of an operand in memory: loops take four at a time. */
export function strideOf(dim: number): number {
  return Math.max(4, Math.ceil(dim / 4) * 4);
}

/** Allocates the rows of an operand. @param sums where the sums by row are: of sizes and of squares */
export function createFactor(
  matrix: (length: number) => Matrix,
  dim: number,
  [rowSizes, rowSquares]: readonly [Matrix, Matrix],
): FactorRows {
  const stride = strideOf(dim);
  return {
    dim,
    stride,
    values: matrix(tileRows * stride),
    sizes: matrix(tileRows * stride),
    squares: matrix(tileRows * stride),
    rowSizes,
    rowSquares,
  };
}

/** Writes rows of an operand into a memory's, zero beyond them; infinities and NaNs become 0. */
export function loadFactor(kernels: PairKernels, factor: FactorRows, rows: Float64Array): void {
  const { dim, stride, values, sizes, squares, rowSizes, rowSquares } = factor;
  if (stride === dim) values.view.set(rows);
  else
    for (let from = 0, to = 0; from < rows.length; from += dim, to += stride)
      values.view.set(rows.subarray(from, from + dim), to);
  values.view.fill(0, (rows.length / dim) * stride);
  kernels.completeFactor(
    values.address,
    sizes.address,
    squares.address,
    rowSizes.address,
    rowSquares.address,
    stride,
  );
}
