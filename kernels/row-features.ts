import { decodeTensor, type Tensor } from '../src/formats/index.js';
import {
  countKeys,
  keptWeights,
  problemMask,
  scoreLaw,
  type KeyRange,
  type Problem,
  type ProblemShape,
} from '../src/problem/index.js';
import { lazily } from '../src/reuse.js';

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

/** Inputs of a row beside q, k, v, scale and softcap; the arrays have an element for each of its keys. */
export interface RowFeatures {
  /** The keys that it sees, ascending; listed when they are first asked for. */
  readonly keys: Int32Array;
  /** Addends of their scores, exactly; null for none. */
  readonly addend: Float64Array | null;
  /** Weights that dropout keeps, 1 or 0; null for no dropout. */
  readonly kept: Uint8Array | null;
  /** The score of the sink; −∞ for none. */
  readonly sink: number;
}

/** Numbers of keys that lie in ranges, gathered: `fill` writes those of a stretch that begins at a key. */
function gathered<Numbers extends Float64Array | Int32Array | Uint8Array>(
  numbers: Numbers,
  ranges: readonly KeyRange[],
  fill: (firstKey: number, target: Numbers) => void,
): Numbers {
  let at = 0;
  for (const { begin, end } of ranges)
    fill(begin, numbers.subarray(at, (at += end - begin)) as Numbers);
  return numbers;
}

/**
 * Gives the inputs of each row of a problem.
 * @returns a function of a head, counted over [batch, heads], and a query, counted over the rows that the
 *   problem has
 */
export function rowFeatures(
  problem: Problem,
  shape: ProblemShape,
): (head: number, query: number) => RowFeatures {
  const mask = problemMask(problem, shape);
  const { addend } = scoreLaw(problem, shape);
  const dropout = keptWeights(problem, shape);
  const sinks = problem.sink === undefined ? null : decodeTensor(problem.sink.logits);
  return (head, query) => {
    const ranges = mask.ranges(head, query);
    const count = countKeys(ranges);
    const keys = lazily(() =>
      gathered(new Int32Array(count), ranges, (first, target) => {
        for (let j = 0; j < target.length; j++) target[j] = first + j;
      }),
    );
    return {
      get keys() {
        return keys();
      },
      addend:
        addend === null
          ? null
          : gathered(new Float64Array(count), ranges, (first, target) =>
              addend(head, query, first, target),
            ),
      kept:
        dropout === null
          ? null
          : gathered(new Uint8Array(count), ranges, (first, target) =>
              dropout.fill(head, query, first, target),
            ),
      sink: sinks === null ? -Infinity : sinks[head % shape.heads],
    };
  };
}
