import type { ChunkGradients } from './chunk-gradients.js';
import type { ChunkParts } from './chunk-parts.js';
import type { RunContext } from './context.js';
import type { TokenInputs } from './inputs.js';
import { scaleRows } from './matrix/matrices.js';

/** Sets dN = scale Pᵀ dO + (E_{C←j} k_j)ᵀ dS. */
export function setWriteGradients(
  { writes, outputs, stateOperand }: ChunkGradients,
  parts: ChunkParts,
  { count: n }: TokenInputs,
  { products, rounding, shape, scale, isDelta }: RunContext,
): void {
  const { decays, intra, endKeys, endWrites } = parts;
  const { keyDim, valueDim } = shape;
  const size = n * valueDim;
  products.product(endWrites, endKeys, stateOperand, [n, keyDim, valueDim]);
  rounding.value('sum', endWrites, 0, size);
  if (decays.count === 1) scaleRows(endWrites, endWrites, decays.toEnd, [n, valueDim], true);
  products.productOfTransposed(writes, intra, outputs, [n, n, valueDim]);
  for (let i = 0; i < size; i++) writes[i] *= scale;
  rounding.value('sum', writes, 0, size);
  // Kernels of delta writes store this part before the state's gradient is there.
  if (isDelta) rounding.value('write-gradient', writes, 0, size);
  for (let i = 0; i < size; i++) writes[i] += endWrites[i];
  rounding.value('sum', writes, 0, size);
  rounding.value('write-gradient', writes, 0, size);
}

/** Sets dP = scale dO Nᵀ, of the lower triangle, decayed by head. */
export function setIntraGradient(
  { intra, outputs }: ChunkGradients,
  { writes, decays }: ChunkParts,
  { count: n }: TokenInputs,
  { products, rounding, shape, scale }: RunContext,
): void {
  products.productWithTransposed(intra, outputs, writes, [n, shape.valueDim, n]);
  for (let s = 0; s < n; s++) {
    const row = s * n;
    intra.fill(0, row + s + 1, row + n);
    rounding.value('sum', intra, row, row + s + 1);
    for (let j = 0; j <= s; j++)
      intra[row + j] *= scale * (decays.count === 1 ? decays.within[row + j] : 1);
    rounding.value('intra-gradient', intra, row, row + s + 1);
  }
}

/** Rounds the elements of a triangle, those below the diagonal or with it, and sets the others to 0. */
function roundTriangle(matrix: Float64Array, n: number, diagonal: 0 | 1, round: RoundRow): void {
  for (let s = 0; s < n; s++) {
    const [row, end] = [s * n, s * n + s + diagonal];
    matrix.fill(0, end, row + n);
    if (end > row) round(matrix, row, end);
  }
}

type RoundRow = (values: Float64Array, first: number, end: number) => void;

/** Sets dW = −dN Sᵀ, dT, and dA = −Tᵀ dT Tᵀ, decayed by head. */
export function setInverseGradients(
  gradients: ChunkGradients,
  parts: ChunkParts,
  { count: n }: TokenInputs,
  { products, rounding, shape }: RunContext,
): void {
  const { writes, keyFactor, inverse, triangle } = gradients;
  const { stateOperand, keyOperand, valueOperand, decays } = parts;
  const { keyDim, valueDim } = shape;
  const stored: RoundRow = (values, first, end) => {
    rounding.value('sum', values, first, end);
    rounding.value('intra-gradient', values, first, end);
  };
  products.productWithTransposed(keyFactor, writes, stateOperand, [n, valueDim, keyDim]);
  for (let i = 0; i < n * keyDim; i++) keyFactor[i] = -keyFactor[i];
  rounding.value('sum', keyFactor, 0, n * keyDim);
  rounding.value('write-gradient', keyFactor, 0, n * keyDim);
  products.productWithTransposed(inverse, writes, valueOperand, [n, valueDim, n]);
  products.productWithTransposed(inverse, keyFactor, keyOperand, [n, keyDim, n], true);
  roundTriangle(inverse, n, 1, stored);
  products.productWithTransposed(triangle, inverse, parts.inverse, [n, n, n]);
  roundTriangle(triangle, n, 1, stored);
  inverse.set(triangle.subarray(0, n * n));
  products.productOfTransposed(triangle, parts.inverse, inverse, [n, n, n]);
  roundTriangle(triangle, n, 0, (values, first, end) => rounding.value('sum', values, first, end));
  for (let i = 0; i < n * n; i++)
    triangle[i] = -triangle[i] * (decays.count === 1 ? decays.within[i] : 1);
  roundTriangle(triangle, n, 0, (values, first, end) =>
    rounding.value('intra-gradient', values, first, end),
  );
}

/** Sets dV, dβ without A's share, A's share, and dK as delta writes read at keys; of additive writes dV is dN. */
export function setReadGradients(
  gradients: ChunkGradients,
  parts: ChunkParts,
  { k, v, beta, count: n }: TokenInputs,
  { products, rounding, shape, isDelta }: RunContext,
): void {
  const { rows, writes, keyFactor, keyOperand, valueOperand, read, triangleRows } = gradients;
  const { decays } = parts;
  const { keyDim, valueDim } = shape;
  if (!isDelta) {
    rows.dv.set(writes.subarray(0, n * valueDim));
    return;
  }
  products.productOfTransposed(keyOperand, parts.inverse, keyFactor, [n, n, keyDim]);
  products.productOfTransposed(valueOperand, parts.inverse, writes, [n, n, valueDim]);
  rounding.value('sum', keyOperand, 0, n * keyDim);
  rounding.value('sum', valueOperand, 0, n * valueDim);
  if (decays.count > 0)
    scaleRows(keyOperand, keyOperand, decays.fromStart, [n, keyDim], decays.count === 1);
  scaleRows(rows.dv, valueOperand, beta, [n, valueDim], true);
  for (let s = 0; s < n; s++) {
    const row = s * keyDim;
    rows.dbeta[s] =
      products.dot(v, s * valueDim, valueOperand, s * valueDim, valueDim) +
      products.dot(k, row, keyOperand, row, keyDim);
    gradients.strengthOfTriangle[s] = products.dot(k, row, triangleRows, row, keyDim);
    for (let i = row; i < row + keyDim; i++) read[i] = beta[s] * (keyOperand[i] + triangleRows[i]);
  }
}
