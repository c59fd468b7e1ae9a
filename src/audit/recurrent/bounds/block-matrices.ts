import type { RecurrentShape } from '../../../problem/index.js';
import { addProduct } from './matrices.js';
import type { TokenBlock } from './token-blocks.js';

/** By token and key dimension, what the row's factor of each term of A and P errs by, and what it is. */
export interface TermErrors {
  /** |β k| times a share: what is alike for no two terms. */
  readonly triangle: Float64Array;
  /** What β k itself is rounded by, the same in all terms of a row. */
  readonly shared: Float64Array;
  /** |q| times a share. */
  readonly intra: Float64Array;
}

/**
 * The exact matrices of a block of n tokens, in the words of the chunked form (`RecurrentArithmetic`); both forms' errors spread by
 * them. Rows are tokens.
 */
export interface BlockMatrices {
  /** A and P, [n, n]; T = (I + A)^−1. */
  readonly triangle: Float64Array;
  readonly intra: Float64Array;
  readonly inverse: Float64Array;
  /** What A and P err by: sums of {@link TermErrors} times decayed keys; and what of A's is not shared by a row. */
  readonly triangleError: Float64Array;
  readonly ownError: Float64Array;
  readonly intraError: Float64Array;
  /** β k e^G. */
  readonly startKeys: Float64Array;
  /** q e^G. */
  readonly startQueries: Float64Array;
  /** k e^(G_C − G). */
  readonly endKeys: Float64Array;
  /** e^(G_C), by key dimension. */
  readonly endDecay: Float64Array;
}

/** Matrices of blocks of up to `most` tokens. */
export function blockMatrices(most: number, { keyDim }: RecurrentShape): BlockMatrices {
  const square = () => new Float64Array(most * most);
  const rows = () => new Float64Array(most * keyDim);
  return {
    triangle: square(),
    intra: square(),
    inverse: square(),
    triangleError: square(),
    ownError: square(),
    intraError: square(),
    startKeys: rows(),
    startQueries: rows(),
    endKeys: rows(),
    endDecay: new Float64Array(keyDim),
  };
}

/** β k e^G, q e^G and e^(G_C). */
function setStart(matrices: BlockMatrices, block: TokenBlock, dim: number): void {
  const { startKeys, startQueries, endDecay } = matrices;
  const { count, q, k, beta, decay } = block;
  endDecay.fill(1);
  for (let t = 0; t < count; t++)
    for (let i = 0; i < dim; i++) {
      const at = t * dim + i;
      endDecay[i] *= decay[at];
      startKeys[at] = beta[t] * k[at] * endDecay[i];
      startQueries[at] = q[at] * endDecay[i];
    }
}

/** Row t of A and P, and of their errors; `keys` are decayed to the row. */
function setRow(
  matrices: BlockMatrices,
  block: TokenBlock,
  errors: TermErrors | null,
  t: number,
  dim: number,
): void {
  const { triangle, intra, triangleError, ownError, intraError, endKeys } = matrices;
  const { count, q, k, beta } = block;
  const row = t * dim;
  for (let j = 0; j < count; j++) {
    let [a, p, ofA, ofRow, ofP] = [0, 0, 0, 0, 0];
    if (j <= t) {
      const from = j * dim;
      for (let i = 0; i < dim; i++) {
        a += k[row + i] * endKeys[from + i];
        p += q[row + i] * endKeys[from + i];
      }
      if (errors)
        for (let i = 0; i < dim; i++) {
          const key = Math.abs(endKeys[from + i]);
          ofA += errors.triangle[row + i] * key;
          ofRow += errors.shared[row + i] * key;
          ofP += errors.intra[row + i] * key;
        }
    }
    const at = t * count + j;
    triangle[at] = j < t ? beta[t] * a : 0;
    ownError[at] = j < t ? ofA : 0;
    triangleError[at] = j < t ? ofA + ofRow : 0;
    intra[at] = p;
    intraError[at] = ofP;
  }
}

/** T by substitution. */
function setInverse({ inverse, triangle }: BlockMatrices, n: number): void {
  inverse.fill(0, 0, n * n);
  for (let s = 0; s < n; s++) {
    const row = s * n;
    inverse[row + s] = 1;
    for (let j = 0; j < s; j++) {
      const factor = triangle[row + j];
      const from = j * n;
      if (factor !== 0) for (let c = 0; c <= j; c++) inverse[row + c] -= factor * inverse[from + c];
    }
  }
}

/** Sets the matrices of a block; T only for delta writes. */
export function setBlockMatrices(
  matrices: BlockMatrices,
  block: TokenBlock,
  errors: TermErrors | null,
  { dim, isDelta }: { readonly dim: number; readonly isDelta: boolean },
): void {
  const { endKeys } = matrices;
  const { count, k, decay } = block;
  setStart(matrices, block, dim);
  for (let t = 0; t < count; t++) {
    const row = t * dim;
    for (let j = 0; j < t; j++)
      for (let i = 0; i < dim; i++) endKeys[j * dim + i] *= decay[row + i];
    endKeys.set(k.subarray(row, row + dim), row);
    setRow(matrices, block, errors, t, dim);
  }
  if (isDelta) setInverse(matrices, count);
}

/** x = q e^G − (P F)(reads): what a block's outputs read of the state before it, less what its writes read of it. */
export function setOutputReads(
  reads: Float64Array,
  { startQueries }: BlockMatrices,
  intra: Float64Array,
  writeReads: Float64Array | null,
  { count, dim }: { readonly count: number; readonly dim: number },
): void {
  const size = count * dim;
  reads.fill(0, 0, size);
  if (writeReads) {
    addProduct(reads, intra, writeReads, { rows: count, inner: count, columns: dim });
    for (let i = 0; i < size; i++) reads[i] = -reads[i];
  }
  for (let i = 0; i < size; i++) reads[i] += startQueries[i];
}
