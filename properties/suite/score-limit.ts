import { decodeToFloat64, formats } from '../../src/formats/index.js';
import type { Problem, Tensor } from '../../src/problem/index.js';

/** The largest Euclidean norm of the last dimension; special values count as 0. */
function largestNorm({ data, format, shape }: Tensor): number {
  const values = decodeToFloat64(data, formats[format]);
  const dim = shape.at(-1) ?? 0;
  let largest = 0;
  for (let first = 0; first < values.length; first += dim) {
    let sum = 0;
    for (let i = first; i < first + dim; i++) {
      const x = values[i];
      if (Number.isFinite(x)) sum += x * x;
    }
    largest = Math.max(largest, Math.sqrt(sum));
  }
  return largest;
}

/** How large scores may be that a kernel promises to take. */
export interface ScoreLimit {
  /** Of |q·k|. */
  readonly raw: number;
  /** Of |scale · q·k|, before a softcap. */
  readonly scaled: number;
}

/** Whether no score of a problem can be beyond the limit: by the norms of Q and K. */
export function isWithinScoreLimit(problem: Problem, { raw, scaled }: ScoreLimit): boolean {
  const largest = largestNorm(problem.q) * largestNorm(problem.k);
  return largest <= raw && largest * Math.abs(problem.scale) <= scaled;
}
