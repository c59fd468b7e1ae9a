import type { TensorCoreTile } from '../../../src/hardware/index.js';
import type { ExactArithmetic } from './engine.js';
import type { BlockWeights } from './weights.js';
import { emulatedRescale, type RunningMaximum } from './running-maximum.js';
import type { EmulatedTechniques } from '../../techniques.js';

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
  /** Product of the weights rounded to the format of the inputs. */
  readonly rounded: () => Float64Array;
  /** Product of the weights themselves. */
  readonly unrounded: () => Float64Array;
  /** Takes the next block; the arrays given before are used again. */
  readonly next: (weights: BlockWeights, values: BlockValues, rows: number) => void;
}

/** Makes a block's products, of up to `capacity` elements. */
export function createBlockProducts(capacity: number, exact: ExactArithmetic): BlockProducts {
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
    exact.product(product, block.weights[kind], values, { rows: block.rows, inner, columns });
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

/** The techniques that decide the sums O beyond those of the weights. */
export const outputSumTechniques = ['p-round', 'rescale', 'pv-accumulate'] as const;

/** The sums O of a tile over the blocks of keys, before they are divided. */
interface OutputSums {
  /** [tile's queries × columns], fp64. */
  readonly sums: Float64Array;
  readonly begin: (rows: number) => void;
  /** Takes the next block: rescales, unless it is the first, and adds P·V. */
  readonly step: (path: RunningMaximum, products: BlockProducts, values: BlockValues) => void;
}

/** The sums of runs that emulate the same techniques up to here, with V padded to `columns`. */
export function createOutputSums(
  emulated: EmulatedTechniques,
  tileQueries: number,
  columns: number,
): OutputSums {
  const isRounded = emulated.has('p-round');
  const sums = new Float64Array(tileQueries * columns);
  let rows = 0;
  let isFirst = true;

  function rescaleSums(path: RunningMaximum): void {
    const isEmulated = emulated.has('rescale');
    for (let row = 0; row < rows; row++) {
      if (isEmulated && path.multiplies[row] === 0) continue;
      const alpha = isEmulated ? path.alpha[row] : path.exactAlpha[row];
      if (alpha === 1) continue;
      for (let i = row * columns; i < (row + 1) * columns; i++)
        sums[i] = isEmulated ? emulatedRescale(sums[i], alpha) : sums[i] * alpha;
    }
  }

  /**
   * sums += P·V by the tensor cores at the fp32 sums nearest to `sums` and the rounded weights, plus
   * the contributions of the differences from these.
   */
  function accumulate(products: BlockProducts, { product }: BlockValues): void {
    const count = rows * columns;
    const { c } = product;
    c.fill(0);
    // A store to a Float32Array rounds to nearest even.
    c.set(sums.subarray(0, count));
    for (let i = 0; i < count; i++) sums[i] = sums[i] === c[i] ? 0 : sums[i] - c[i];
    product.multiplyAccumulate();
    for (let i = 0; i < count; i++) sums[i] = sums[i] === 0 ? c[i] : c[i] + sums[i];
    if (isRounded) return;
    const [unrounded, rounded] = [products.unrounded(), products.rounded()];
    for (let i = 0; i < count; i++) sums[i] += unrounded[i] - rounded[i];
  }

  return {
    sums,
    begin: (count) => {
      rows = count;
      isFirst = true;
      sums.fill(0);
    },
    step: (path, products, values) => {
      if (!isFirst) rescaleSums(path);
      isFirst = false;
      if (emulated.has('pv-accumulate')) accumulate(products, values);
      else {
        const added = isRounded ? products.rounded() : products.unrounded();
        for (let i = 0; i < rows * columns; i++) sums[i] += added[i];
      }
    },
  };
}
