import { decodeTensor } from '../../../formats/index.js';
import type { Tensor } from '../../../problem/index.js';

/**
 * How many rows of a head are equal to each of its rows, itself among them: what is computed of equal rows alone errs alike.
 * Rows are compared by one number of each, so that others may count as equal by chance, which makes more of their errors.
 */
export function countAlike(tensor: Tensor, head: number, rows: number, dim: number): Float64Array {
  const values = decodeTensor(tensor, head * rows * dim, (head + 1) * rows * dim);
  const numbers = new Float64Array(rows);
  const counts = new Map<number, number>();
  for (let row = 0; row < rows; row++) {
    let number = 0;
    for (let c = 0; c < dim; c++) number += values[row * dim + c] * Math.sin(c + 1);
    numbers[row] = number;
    counts.set(number, (counts.get(number) ?? 0) + 1);
  }
  return numbers.map((number) => counts.get(number)!);
}
