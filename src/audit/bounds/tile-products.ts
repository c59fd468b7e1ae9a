import { createAllocator, instantiator } from '../../reuse.js';
import { binary } from './bounds.generated.js';
import { tileRows } from './memory.js';

/** The loop of the module that multiplies: C = A·B in fp64, `columns` and `rows` multiples of 4. */
interface ProductKernels {
  readonly memory: WebAssembly.Memory;
  product(a: number, b: number, c: number, rows: number, inner: number, columns: number): void;
}

const instantiate = instantiator<ProductKernels>(binary, 'products of tiles');

/** A matrix in the memory of the loop. */
export interface TileMatrix {
  readonly address: number;
  readonly view: Float64Array;
}

/** Products of matrices of 64 rows. */
export interface TileProducts {
  /** So many numbers, all 0. */
  readonly matrix: (length: number) => TileMatrix;
  /** C = A·B for A of [64 × inner] and B of [inner × columns], row by row; `columns` a multiple of 4. */
  readonly multiply: (
    a: TileMatrix,
    b: TileMatrix,
    c: TileMatrix,
    inner: number,
    columns: number,
  ) => void;
}

/** @param numbers how many all matrices have together */
export function createTileProducts(numbers: number): TileProducts {
  const kernels = instantiate();
  const { allocate } = createAllocator(kernels.memory, 8 * numbers);
  return {
    matrix: (length) => {
      const address = allocate(8 * length);
      return { address, view: new Float64Array(kernels.memory.buffer, address, length) };
    },
    multiply: (a, b, c, inner, columns) =>
      kernels.product(a.address, b.address, c.address, tileRows, inner, columns),
  };
}
