import { decodeTensor, type Tensor } from '../src/formats/index.js';

/** The largest norm of a tensor's rows of `dim` elements: no score exceeds the product of those of Q and K. */
export function largestRowNorm(tensor: Tensor, dim: number): number {
  const values = decodeTensor(tensor);
  let largest = 0;
  for (let row = 0; row < values.length; row += dim) {
    const norm = Math.hypot(...values.subarray(row, row + dim));
    if (norm > largest) largest = norm;
  }
  return largest;
}
