import { addProduct, type ProductSize } from '../matrices.js';
import type { Conversion } from '../roundings.js';
import { errored, type Errored } from './gradient-rows.js';

/** Products of matrices that err, and of what they err by. */
export interface ErroredProducts {
  /**
   * out += sign a b, or aᵀ b: |δ| ≤ (|a| + δa)(δb + sum (|b| + δb)) + δa |b|, by element.
   */
  readonly add: (
    out: Errored,
    a: Errored,
    b: Errored,
    size: ProductSize,
    how?: { readonly isTransposed?: boolean; readonly sign?: 1 | -1 },
  ) => void;
  /** The transpose of [rows, columns]; good until the next. */
  readonly transposed: (a: Errored, rows: number, columns: number) => Errored;
}

/** Sets a matrix to zeros, errors included. */
export function clear({ value, error }: Errored): void {
  value.fill(0);
  error.fill(0);
}

/** Rounds the first `size` elements: raises their errors. */
export function roundErrored(
  { value, error }: Errored,
  { error: by }: Conversion,
  size: number,
): void {
  for (let i = 0; i < size; i++) error[i] += by(Math.abs(value[i]) + error[i]);
}

/** Products of matrices of up to `most` elements, whose sums err by `sum`. */
export function erroredProducts(most: number, sum: number): ErroredProducts {
  const scratch = () => new Float64Array(most);
  const [signed, larger, errors, sizes] = [scratch(), scratch(), scratch(), scratch()];
  const turned = errored(most);
  return {
    add: (out, a, b, size, { isTransposed = false, sign = 1 } = {}) => {
      const ofA = size.rows * size.inner;
      const ofB = size.inner * size.columns;
      for (let i = 0; i < ofA; i++) {
        signed[i] = sign * a.value[i];
        larger[i] = Math.abs(a.value[i]) + a.error[i];
      }
      for (let i = 0; i < ofB; i++) {
        sizes[i] = Math.abs(b.value[i]);
        errors[i] = b.error[i] + sum * (sizes[i] + b.error[i]);
      }
      addProduct(out.value, signed, b.value, size, isTransposed);
      addProduct(out.error, larger, errors, size, isTransposed);
      addProduct(out.error, a.error, sizes, size, isTransposed);
    },
    transposed: (a, rows, columns) => {
      for (let i = 0; i < rows; i++)
        for (let j = 0; j < columns; j++) {
          turned.value[j * rows + i] = a.value[i * columns + j];
          turned.error[j * rows + i] = a.error[i * columns + j];
        }
      return turned;
    },
  };
}
