import type { RecurrentArithmetic } from '../arithmetic.js';

/** Products of row-major fp64 matrices; sizes are [rows, inner, columns]. A factor of 0 adds nothing, whatever it is multiplied with. */

/** The sizes of a product: rows, inner size, columns. */
export type ProductSizes = readonly [rows: number, inner: number, columns: number];

/** A matrix, from its first element on. */
export type Matrix = Float64Array;

/** Factors of the rows of a matrix: so many, from one element of another matrix on, `step` elements apart. */
interface RowFactors {
  readonly values: Matrix;
  readonly first: number;
  readonly step: number;
  readonly count: number;
}

/** Adds the first rows of b, times a factor each, to the row of `out` from element `to` on, in their order. */
function addRows(
  out: Matrix,
  to: number,
  { values, first, step, count }: RowFactors,
  b: Matrix,
  columns: number,
): void {
  let at = first;
  let from = 0;
  for (let j = 0; j < count;) {
    const f0 = values[at];
    const [f1, f2, f3] =
      j + 4 <= count
        ? [values[at + step], values[at + 2 * step], values[at + 3 * step]]
        : [0, 0, 0];
    if (f0 !== 0 && f1 !== 0 && f2 !== 0 && f3 !== 0) {
      // Four at once: the sum stays in a register, its terms are added one after the other all the same.
      const second = from + columns;
      const third = second + columns;
      const fourth = third + columns;
      for (let c = 0; c < columns; c++)
        out[to + c] =
          out[to + c] +
          f0 * b[from + c] +
          f1 * b[second + c] +
          f2 * b[third + c] +
          f3 * b[fourth + c];
      j += 4;
      at += 4 * step;
      from = fourth + columns;
      continue;
    }
    if (f0 !== 0) for (let c = 0; c < columns; c++) out[to + c] += f0 * b[from + c];
    j += 1;
    at += step;
    from += columns;
  }
}

/** out = a b, or out + a b. */
export function product(
  out: Matrix,
  a: Matrix,
  b: Matrix,
  [rows, inner, columns]: ProductSizes,
  adds = false,
): void {
  if (!adds) out.fill(0, 0, rows * columns);
  for (let i = 0; i < rows; i++) {
    const factors = { values: a, first: i * inner, step: 1, count: inner };
    addRows(out, i * columns, factors, b, columns);
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
  for (let i = 0; i < rows; i++) {
    const factors = { values: a, first: i, step: rows, count: inner };
    addRows(out, i * columns, factors, b, columns);
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
  for (let i = 0; i < rows; i++) {
    const to = i * columns;
    let c = 0;
    // Four sums at once, since one would wait for each of its additions.
    for (; c + 4 <= columns; c += 4) {
      let [s0, s1, s2, s3] = [0, 0, 0, 0];
      const first = c * inner;
      for (let l = 0, at = i * inner; l < inner; l++, at++) {
        const x = a[at];
        s0 += x * b[first + l];
        s1 += x * b[first + inner + l];
        s2 += x * b[first + 2 * inner + l];
        s3 += x * b[first + 3 * inner + l];
      }
      out[to + c] = adds ? out[to + c] + s0 : s0;
      out[to + c + 1] = adds ? out[to + c + 1] + s1 : s1;
      out[to + c + 2] = adds ? out[to + c + 2] + s2 : s2;
      out[to + c + 3] = adds ? out[to + c + 3] + s3 : s3;
    }
    for (; c < columns; c++) {
      const sum = dot(a, i * inner, b, c * inner, inner);
      out[to + c] = adds ? out[to + c] + sum : sum;
    }
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
