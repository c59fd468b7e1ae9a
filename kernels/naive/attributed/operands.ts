import { decodeToFloat64, formats } from '../../../src/formats/index.js';
import type { Tensor } from '../../../src/problem/index.js';

/** Rows of a tensor, [rows × dim]. */
export interface Operand {
  readonly values: Float64Array;
  /** The fp32 numbers nearest to the values; the same array where these are fp32 numbers. */
  readonly nearest: Float64Array;
}

/** Decodes rows [first, first + rows) of `dim` elements. */
export function readOperand(
  { data, format }: Tensor,
  first: number,
  rows: number,
  dim: number,
): Operand {
  const values = new Float64Array(rows * dim);
  decodeToFloat64(data, formats[format], values, first * dim, (first + rows) * dim);
  const nearest = format === 'fp64' ? values.map(Math.fround) : values;
  return { values, nearest };
}
