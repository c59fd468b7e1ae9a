/**
 * target += A·B in fp64, for A [rows × inner], B [inner × columns], target [rows × columns]. Products
 * of 16-bit operands are exact; four products are summed before they are added, so that the sum of n
 * errs by less than n·2^-53 of the sum of magnitudes.
 */
export function addExactProduct(
  target: Float64Array,
  a: Float64Array,
  b: Float64Array,
  rows: number,
  inner: number,
  columns: number,
): void {
  for (let row = 0; row < rows; row++) {
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
}
