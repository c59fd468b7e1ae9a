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

/** Products P·V of one block in fp64, [rows × columns], each computed when it is first asked for. */
export interface BlockProducts {
  /** Of the weights rounded to the format of the inputs. */
  readonly rounded: () => Float64Array;
  /** Of the weights themselves. */
  readonly unrounded: () => Float64Array;
  /** Takes the next block; the arrays given before are used again. */
  readonly next: (weights: BlockWeights, values: BlockValues, rows: number) => void;
}

/** Makes a block's products, of up to `capacity` elements. */
export function createBlockProducts(capacity: number): BlockProducts {
  const kinds = ['rounded', 'weights'] as const;
  const known = { rounded: false, weights: false };
  const products = { rounded: new Float64Array(capacity), weights: new Float64Array(capacity) };
  let block: {
    readonly weights: BlockWeights;
    readonly values: BlockValues;
    readonly rows: number;
  } | null = null;

  function productOf(kind: (typeof kinds)[number]): Float64Array {
    const product = products[kind];
    if (known[kind] || block === null) return product;
    const { values, inner, columns } = block.values;
    product.fill(0, 0, block.rows * columns);
    addExactProduct(product, block.weights[kind], values, block.rows, inner, columns);
    known[kind] = true;
    return product;
  }

  return {
    rounded: () => productOf('rounded'),
    unrounded: () => productOf('weights'),
    next: (weights, values, rows) => {
      block = { weights, values, rows };
      for (const kind of kinds) known[kind] = false;
    },
  };
}
