import type { RecurrentArithmetic, RecurrentRounding } from '../arithmetic.js';

/** Rows `first` to `end` of the inverse, row by row, of a diagonal block on its own. */
function substitute(
  inverse: Float64Array,
  triangle: Float64Array,
  n: number,
  [first, end]: readonly [first: number, end: number],
  rounding: RecurrentRounding,
): void {
  for (let s = first; s < end; s++) {
    const row = s * n;
    inverse[row + s] = 1;
    for (let j = first; j < s; j++) {
      const factor = triangle[row + j];
      for (let c = first; c <= j; c++) inverse[row + c] -= factor * inverse[j * n + c];
    }
    rounding.value('sum', inverse, row + first, row + s);
  }
}

/** The rows of a block left of its diagonal block: −T_II Σ_L A_IL T_LJ, over the blocks L above it. */
function join(
  inverse: Float64Array,
  triangle: Float64Array,
  n: number,
  [first, end]: readonly [first: number, end: number],
  rounding: RecurrentRounding,
): void {
  const sums = new Float64Array((end - first) * n);
  for (let s = first; s < end; s++) {
    const row = (s - first) * n;
    for (let j = 0; j < first; j++) {
      const factor = triangle[s * n + j];
      for (let c = 0; c <= j; c++) sums[row + c] += factor * inverse[j * n + c];
    }
    rounding.value('sum', sums, row, row + first);
  }
  for (let s = first; s < end; s++) {
    for (let j = first; j <= s; j++) {
      const factor = inverse[s * n + j];
      for (let c = 0; c < first; c++) inverse[s * n + c] -= factor * sums[(j - first) * n + c];
    }
    rounding.value('sum', inverse, s * n, s * n + first);
  }
}

/** T = (I + A)^−1 of a strictly lower triangle A of [n, n], row by row or by diagonal blocks that are then joined. */
export function invertTriangle(
  inverse: Float64Array,
  triangle: Float64Array,
  n: number,
  order: RecurrentArithmetic['inverse'],
  rounding: RecurrentRounding,
): void {
  inverse.fill(0, 0, n * n);
  const block = order === 'substitution' ? n : order.block;
  for (let first = 0; first < n; first += block) {
    const range = [first, Math.min(n, first + block)] as const;
    substitute(inverse, triangle, n, range, rounding);
    join(inverse, triangle, n, range, rounding);
  }
  // The diagonal is 1, and no format rounds it.
  for (let s = 1; s < n; s++) rounding.value('inverse', inverse, s * n, s * n + s);
}
