import type { RecurrentArithmetic } from '../arithmetic.js';

/** Products of row-major fp64 matrices; sizes are [rows, inner, columns]. A factor of 0 adds nothing, whatever it is multiplied with. */

/** The sizes of a product: rows, inner size, columns. */
export type ProductSizes = readonly [rows: number, inner: number, columns: number];

/** A matrix, from its first element on. */
export type Matrix = Float64Array;

/** out = a b, or out + a b. */
export function product(
  out: Matrix,
  a: Matrix,
  b: Matrix,
  [rows, inner, columns]: ProductSizes,
  adds = false,
): void {
  if (!adds) out.fill(0, 0, rows * columns);
  for (let i = 0; i < rows; i++)
    for (let j = 0; j < inner; j++) {
      const factor = a[i * inner + j];
      if (factor === 0) continue;
      const from = j * columns;
      const to = i * columns;
      for (let c = 0; c < columns; c++) out[to + c] += factor * b[from + c];
    }
}

/** out = aᵀ b, or out + aᵀ b: a of [inner, rows]. */
export function productOfTransposed(
  out: Matrix,
  a: Matrix,
  b: Matrix,
  [rows, inner, columns]: ProductSizes,
  adds = false,
): void {
  if (!adds) out.fill(0, 0, rows * columns);
  for (let j = 0; j < inner; j++)
    for (let i = 0; i < rows; i++) {
      const factor = a[j * rows + i];
      if (factor === 0) continue;
      const from = j * columns;
      const to = i * columns;
      for (let c = 0; c < columns; c++) out[to + c] += factor * b[from + c];
    }
}

/** out = a bᵀ, or out + a bᵀ: b of [columns, inner]. */
export function productWithTransposed(
  out: Matrix,
  a: Matrix,
  b: Matrix,
  [rows, inner, columns]: ProductSizes,
  adds = false,
): void {
  for (let i = 0; i < rows; i++)
    for (let c = 0; c < columns; c++) {
      const to = i * columns + c;
      const sum = dot(a, i * inner, b, c * inner, inner);
      out[to] = adds ? out[to] + sum : sum;
    }
}

/** Σ a_i b_i of `count` elements from given ones on. */
export function dot(a: Matrix, fromA: number, b: Matrix, fromB: number, count: number): number {
  let sum = 0;
  for (let i = 0; i < count; i++) sum += a[fromA + i] * b[fromB + i];
  return sum;
}

/** sums = Σ a_i b_i of rows, as many as there are sums. */
export function dotRows(sums: Matrix, a: Matrix, b: Matrix): void {
  const size = a.length / sums.length;
  for (let i = 0; i < sums.length; i++) sums[i] = dot(a, i * size, b, i * size, size);
}

/** to = the rows of `from` times a factor each, or times factors of their own where those are as many as elements. */
export function scaleRows(
  to: Matrix,
  from: Matrix,
  factors: Matrix,
  [rows, columns]: readonly [rows: number, columns: number],
  isByRow: boolean,
): void {
  for (let r = 0; r < rows; r++)
    for (let i = r * columns; i < (r + 1) * columns; i++)
      to[i] = from[i] * factors[isByRow ? r : i];
}

/** Multiplies the rows of a state by decays, as many as there are, or by the first; a decay of 0 forgets what overflowed too. */
export function decayRows(state: Matrix, decays: Matrix, columns: number): void {
  const rows = state.length / columns;
  for (let r = 0; r < rows; r++) {
    const factor = decays[decays.length === 1 ? 0 : r];
    const [first, end] = [r * columns, (r + 1) * columns];
    if (factor === 0) state.fill(0, first, end);
    else for (let i = first; i < end; i++) state[i] *= factor;
  }
}

/** Products of matrices, and sums of products, of a kernel. */
export interface Products {
  readonly product: typeof product;
  readonly productOfTransposed: typeof productOfTransposed;
  readonly productWithTransposed: typeof productWithTransposed;
  readonly dot: typeof dot;
  readonly dotRows: typeof dotRows;
}

/** Sums that lose nothing worth the name: they are rounded where they end. */
const roundedOnce: Products = {
  product,
  productOfTransposed,
  productWithTransposed,
  dot,
  dotRows,
};

/** A matrix as an operand: element (i, j) is at i · row + j · column. */
interface Strided {
  readonly values: Float64Array;
  readonly from: number;
  readonly row: number;
  readonly column: number;
}

/** out = a b, or out + a b, of [rows, inner, columns]; each term is added to the sum so far and rounded to fp32, as a fused operation does. */
function accumulate(
  out: Float64Array,
  a: Strided,
  b: Strided,
  [rows, inner, columns]: ProductSizes,
  { isReversed, adds }: { readonly isReversed: boolean; readonly adds: boolean },
): void {
  for (let i = 0; i < rows; i++)
    for (let c = 0; c < columns; c++) {
      const to = i * columns + c;
      let sum = adds ? out[to] : 0;
      for (let l = 0; l < inner; l++) {
        const j = isReversed ? inner - 1 - l : l;
        const factor = a.values[a.from + i * a.row + j * a.column];
        // A factor of 0 adds nothing, whatever it is multiplied with.
        if (factor !== 0)
          sum = Math.fround(sum + factor * b.values[b.from + j * b.row + c * b.column]);
      }
      out[to] = sum;
    }
}

/** Sums of fp32, a term at a time from the first to the last or the other way round. */
function accumulated(isReversed: boolean): Products {
  const one = new Float64Array(1);
  const products: Products = {
    product(out, a, b, sizes, adds = false) {
      const [, inner, columns] = sizes;
      const left = { values: a, from: 0, row: inner, column: 1 };
      const right = { values: b, from: 0, row: columns, column: 1 };
      accumulate(out, left, right, sizes, { isReversed, adds });
    },
    productOfTransposed(out, a, b, sizes, adds = false) {
      const [rows, , columns] = sizes;
      const left = { values: a, from: 0, row: 1, column: rows };
      const right = { values: b, from: 0, row: columns, column: 1 };
      accumulate(out, left, right, sizes, { isReversed, adds });
    },
    productWithTransposed(out, a, b, sizes, adds = false) {
      const [, inner] = sizes;
      const left = { values: a, from: 0, row: inner, column: 1 };
      const right = { values: b, from: 0, row: 1, column: inner };
      accumulate(out, left, right, sizes, { isReversed, adds });
    },
    dot(a, fromA, b, fromB, count) {
      const left = { values: a, from: fromA, row: count, column: 1 };
      const right = { values: b, from: fromB, row: 1, column: 1 };
      accumulate(one, left, right, [1, count, 1], { isReversed, adds: false });
      return one[0];
    },
    dotRows(sums, a, b) {
      const size = a.length / sums.length;
      for (let i = 0; i < sums.length; i++) sums[i] = products.dot(a, i * size, b, i * size, size);
    },
  };
  return products;
}

/** The products of a kernel of such an arithmetic. */
export const productsOf = ({ accumulation }: RecurrentArithmetic): Products =>
  accumulation === undefined ? roundedOnce : accumulated(accumulation === 'reversed');
