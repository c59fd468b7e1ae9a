import type { RecurrentArithmetic } from '../../../../kernels/index.js';
import { addProduct } from './matrices.js';

/** A block's A and T, [n, n]. */
export interface Triangle {
  readonly n: number;
  /** A, strictly lower. */
  readonly triangle: Float64Array;
  /** What A errs by. */
  readonly triangleError: Float64Array;
  /** T = (I + A)^−1. */
  readonly inverse: Float64Array;
}

/** What the computed inverse T̂ of a block errs by. */
export interface InverseErrors {
  /** |T|, the bound of |T̂ − T| before T̂ is rounded, what rounding it adds, and |T̂| after it at most; [n, n]. */
  readonly magnitude: Float64Array;
  readonly error: Float64Array;
  readonly rounding: Float64Array;
  readonly largest: Float64Array;
  /** What of |F| is the residual of the method. */
  readonly residual: Float64Array;
}

/** Bounds the inverse of a block; what it returns is good until the next call. */
export type InverseBounder = (given: Triangle) => InverseErrors;

/** How an inverse is made. */
export interface InverseArithmetic {
  readonly order: RecurrentArithmetic['inverse'];
  /** The relative error of a sum of as many products as a block has tokens. */
  readonly sum: number;
  /** What its rounding moves a number of this magnitude by at most. */
  readonly rounded: (magnitude: number) => number;
}

/** Memory for blocks of up to `most` tokens. */
function inverseErrors(most: number): InverseErrors {
  const square = () => new Float64Array(most * most);
  const [magnitude, error, rounding] = [square(), square(), square()];
  return { magnitude, error, rounding, largest: square(), residual: square() };
}

/**
 * A bounder for blocks of up to `most` tokens. T̂ − T = −T F T̂ with a strictly lower F of at most what A errs by plus the residual of
 * the method (docs/theory/bounds-recurrent.md), so that each row is bounded by the rows above it; then T̂ is rounded.
 */
export function inverseBounder(
  most: number,
  { order, sum, rounded }: InverseArithmetic,
): InverseBounder {
  const square = () => new Float64Array(most * most);
  const made = inverseErrors(most);
  const { magnitude, error, rounding, largest, residual } = made;
  const [whole, spread] = [square(), square()];
  const row = new Float64Array(most);

  /** Sets the error of T̂ before it is rounded from |F|. */
  function setErrors({ n, triangleError }: Triangle): void {
    for (let i = 0; i < n * n; i++) whole[i] = residual[i] + triangleError[i];
    spread.fill(0, 0, n * n);
    error.fill(0, 0, n * n);
    addProduct(spread, magnitude, whole, { rows: n, inner: n, columns: n });
    for (let s = 0; s < n; s++)
      for (let j = 0; j < s; j++) {
        const factor = spread[s * n + j];
        if (factor === 0) continue;
        for (let c = 0; c <= j; c++)
          error[s * n + c] += factor * (magnitude[j * n + c] + error[j * n + c]);
      }
  }

  /** Adds what joining rows `first` to `end` to the blocks above them leaves: 2 sum (I + |Â|) |T̂| |Â|, the first two of the block. */
  function addJoin({ n, triangle, triangleError }: Triangle, first: number, end: number): void {
    const bound = (at: number) => Math.abs(triangle[at]) + triangleError[at];
    const factor = 2 * sum * (1 + sum);
    for (let s = first; s < end; s++) {
      row.fill(0, 0, n);
      for (let j = first; j <= s; j++) {
        const left = s === j ? 1 : bound(s * n + j);
        for (let c = first; c <= j; c++) row[c] += left * (magnitude[j * n + c] + error[j * n + c]);
      }
      for (let j = first; j <= s; j++)
        for (let c = 0; c < first; c++) residual[s * n + c] += factor * row[j] * bound(j * n + c);
    }
  }

  return (given) => {
    const { n, triangle, triangleError, inverse } = given;
    for (let i = 0; i < n * n; i++) {
      magnitude[i] = Math.abs(inverse[i]);
      residual[i] = sum * (Math.abs(triangle[i]) + triangleError[i]);
    }
    setErrors(given);
    if (order !== 'substitution' && order.block < n) {
      for (let first = order.block; first < n; first += order.block)
        addJoin(given, first, Math.min(n, first + order.block));
      setErrors(given);
    }
    for (let s = 0; s < n; s++)
      for (let c = 0; c < n; c++) {
        const at = s * n + c;
        // The diagonal is 1.
        rounding[at] = c < s ? rounded(magnitude[at] + error[at]) : 0;
        largest[at] = magnitude[at] + error[at] + rounding[at];
      }
    return made;
  };
}
