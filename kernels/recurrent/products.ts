import type { RecurrentArithmetic } from './arithmetic.js';
import {
  dot,
  dotRows,
  product,
  productOfTransposed,
  productWithTransposed,
  type ProductSizes,
} from './matrices.js';

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
