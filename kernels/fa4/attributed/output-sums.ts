import type { TensorCoreTile } from '../../../src/hardware/index.js';
import type { BlockWeights } from './block-weights.js';
import { addExactProduct } from './exact-product.js';

/** The values of one block, [inner × columns], in fp64 and as B of the tensor cores' tile. */
export interface BlockValues {
  readonly values: Float64Array;
  readonly inner: number;
  readonly columns: number;
  /** A: the rounded weights of the block; B: its values. Both packed. */
  readonly product: TensorCoreTile;
}

/**
 * sums += P·V by the tensor cores at the fp32 sums nearest to `sums` and the rounded weights, plus
 * what the differences from these contribute. `isRounded`: whether P is the rounded weights.
 */
export function emulatedAccumulate(
  sums: Float64Array,
  block: BlockWeights,
  { values, inner, columns, product }: BlockValues,
  rows: number,
  isRounded: boolean,
): void {
  const count = rows * columns;
  product.c.fill(0);
  // A store to a Float32Array rounds to nearest even.
  product.c.set(sums.subarray(0, count));
  for (let i = 0; i < count; i++) sums[i] = sums[i] === product.c[i] ? 0 : sums[i] - product.c[i];
  if (!isRounded) {
    const { weights, rounded } = block;
    const differences = weights.map((p, i) => (p === rounded[i] ? 0 : p - rounded[i]));
    addExactProduct(sums, differences, values, rows, inner, columns);
  }
  product.multiplyAccumulate();
  for (let i = 0; i < count; i++) sums[i] = sums[i] === 0 ? product.c[i] : product.c[i] + sums[i];
}

/** sums += P·V in fp64. */
export function exactAccumulate(
  sums: Float64Array,
  block: BlockWeights,
  { values, inner, columns }: BlockValues,
  rows: number,
  isRounded: boolean,
): void {
  addExactProduct(sums, isRounded ? block.rounded : block.weights, values, rows, inner, columns);
}
