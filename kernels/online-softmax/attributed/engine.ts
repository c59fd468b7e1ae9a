import { createAllocator, instantiator } from '../../../src/reuse.js';
import { binary } from './attributed.generated.js';

/** Exports of the module; addresses are of its memory. Its source gives the definitions. */
interface AttributedKernels {
  readonly memory: WebAssembly.Memory;
  addProduct(
    target: number,
    a: number,
    b: number,
    rows: number,
    inner: number,
    columns: number,
  ): void;
  powersOfTwo(x: number, count: number): void;
}

const instantiate = instantiator<AttributedKernels>(binary, 'attributed runs');

/** The sizes of a product of matrices [rows × inner] and [inner × columns]. */
export interface ProductSize {
  readonly rows: number;
  readonly inner: number;
  readonly columns: number;
}

/** Arithmetic in fp64, of arrays up to a size. */
export interface ExactArithmetic {
  /**
   * target = A·B, for A [rows × inner], B [inner × columns], target [rows × columns], `inner` and `columns` multiples of
   * four. Products of 16-bit operands are exact; four products are summed before they are added, so that
   * the sum of n errs by less than n·2^-53 of the sum of magnitudes.
   */
  readonly product: (
    target: Float64Array,
    a: Float64Array,
    b: Float64Array,
    size: ProductSize,
  ) => void;
  /** target = 2^x, element by element, relative error below 2^-51 where the result is normal; exact for integers. */
  readonly powersOfTwo: (target: Float64Array, x: Float64Array) => void;
}

/**
 * Makes arithmetic for products of up to `largest` in each size, and for as many exponents as A has elements at
 * most.
 */
export function createExactArithmetic(largest: ProductSize): ExactArithmetic {
  const { memory, addProduct, powersOfTwo } = instantiate();
  // Rows are taken by two.
  const rowsByTwo = 2 * Math.ceil(largest.rows / 2);
  const lengths = [
    rowsByTwo * largest.inner,
    largest.inner * largest.columns,
    rowsByTwo * largest.columns,
  ];
  const { allocate } = createAllocator(memory, 8 * lengths.reduce((sum, length) => sum + length));
  const [inA, inB, inTarget] = lengths.map((length) => {
    const address = allocate(8 * length);
    return { address, values: new Float64Array(memory.buffer, address, length) };
  });

  return {
    product: (target, a, b, { rows, inner, columns }) => {
      inA.values.set(a.subarray(0, rows * inner));
      inB.values.set(b.subarray(0, inner * columns));
      inTarget.values.fill(0, 0, rows * columns);
      addProduct(inTarget.address, inA.address, inB.address, rows, inner, columns);
      target.set(inTarget.values.subarray(0, rows * columns));
    },
    powersOfTwo: (target, x) => {
      inA.values.set(x);
      powersOfTwo(inA.address, x.length + (x.length % 2));
      target.set(inA.values.subarray(0, x.length));
    },
  };
}
