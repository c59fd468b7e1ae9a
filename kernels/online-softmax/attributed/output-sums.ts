import type { TensorCoreTile } from '../../../src/hardware/index.js';
import type { BlockWeights } from './weights.js';
import { emulatedRescale, type RunningMaximum } from './running-maximum.js';
import type { EmulatedTechniques } from '../../techniques.js';

/** The sizes of a product of matrices [rows × inner] and [inner × columns]. */
interface ProductSize {
  readonly rows: number;
  readonly inner: number;
  readonly columns: number;
}

/** One row of `addExactProduct`. */
function addRow(
  target: Float64Array,
  a: Float64Array,
  b: Float64Array,
  row: number,
  { inner, columns }: ProductSize,
): void {
  const into = target.subarray(row * columns, (row + 1) * columns);
  let k = 0;
  for (; k + 3 < inner; k += 4) {
    const at = row * inner + k;
    const [a0, a1, a2, a3] = [a[at], a[at + 1], a[at + 2], a[at + 3]];
    const b0 = k * columns;
    const [b1, b2, b3] = [b0 + columns, b0 + 2 * columns, b0 + 3 * columns];
    for (let c = 0; c < columns; c++)
      into[c] += a0 * b[b0 + c] + a1 * b[b1 + c] + (a2 * b[b2 + c] + a3 * b[b3 + c]);
  }
  for (; k < inner; k++)
    for (let c = 0; c < columns; c++) into[c] += a[row * inner + k] * b[k * columns + c];
}

/** Two rows of `addExactProduct` at once, which read B half as often, for an `inner` that four divides. */
function addTwoRows(
  target: Float64Array,
  a: Float64Array,
  b: Float64Array,
  row: number,
  { inner, columns }: ProductSize,
): void {
  const [first, second] = [row * columns, (row + 1) * columns];
  for (let k = 0; k < inner; k += 4) {
    const [at, under] = [row * inner + k, (row + 1) * inner + k];
    const [x0, x1, x2, x3] = [a[at], a[at + 1], a[at + 2], a[at + 3]];
    const [y0, y1, y2, y3] = [a[under], a[under + 1], a[under + 2], a[under + 3]];
    const b0 = k * columns;
    const [b1, b2, b3] = [b0 + columns, b0 + 2 * columns, b0 + 3 * columns];
    for (let c = 0; c < columns; c++) {
      const [v0, v1, v2, v3] = [b[b0 + c], b[b1 + c], b[b2 + c], b[b3 + c]];
      target[first + c] += x0 * v0 + x1 * v1 + (x2 * v2 + x3 * v3);
      target[second + c] += y0 * v0 + y1 * v1 + (y2 * v2 + y3 * v3);
    }
  }
}

/**
 * target += A·B in fp64, for A [rows × inner], B [inner × columns], target [rows × columns]. Products
 * of 16-bit operands are exact; four products are summed before they are added, so that the sum of n
 * errs by less than n·2^-53 of the sum of magnitudes.
 */
export function addExactProduct(
  target: Float64Array,
  a: Float64Array,
  b: Float64Array,
  size: ProductSize,
): void {
  let row = 0;
  if (size.inner % 4 === 0)
    for (; row + 1 < size.rows; row += 2) addTwoRows(target, a, b, row, size);
  for (; row < size.rows; row++) addRow(target, a, b, row, size);
}

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
    addExactProduct(product, block.weights[kind], values, { rows: block.rows, inner, columns });
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
   * what the differences from these contribute.
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
