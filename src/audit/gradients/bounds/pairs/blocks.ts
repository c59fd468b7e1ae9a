import { tileRows } from '../../../bounds/index.js';

/** Numbers for the pairs of a tile of 64 queries and 64 keys by name, [64 × 64] each. */
export type Blocks<Name extends string> = Readonly<Record<Name, Float64Array>>;

/** Number of elements of a block; and from a block to the next, as the loops have it. */
export const blockLength = tileRows * tileRows;
export const blockStride = blockLength + 16;

/** Blocks that are one behind the other. */
export interface PlacedBlocks<Name extends string> {
  readonly address: number;
  readonly views: Blocks<Name>;
}

/** Takes blocks of memory. */
export function placeBlocks<Name extends string>(
  names: readonly Name[],
  matrix: (length: number) => { readonly address: number; readonly view: Float64Array },
): PlacedBlocks<Name> {
  const { address, view } = matrix(names.length * blockStride);
  const entries = names.map((name, i) => [
    name,
    view.subarray(i * blockStride, i * blockStride + blockLength),
  ]);
  return { address, views: Object.fromEntries(entries) as Blocks<Name> };
}
