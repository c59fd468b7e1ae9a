import type { PlainProblem } from '../plain-problem.js';
import { headRows, rowOf } from '../values.js';

/**
 * The scores of every row of every query head, in fp64, without scale, masks and softcap: one array,
 * overwritten by the next row.
 */
export function* rawScoreRows({ sizes, values }: PlainProblem): Generator<Float64Array> {
  const { keys, qkDim } = sizes;
  const scores = new Float64Array(keys);
  for (const { firstQuery, queries, firstKey } of headRows(sizes))
    for (let row = 0; row < queries; row++) {
      const query = rowOf(values.q, firstQuery + row, qkDim);
      for (let key = 0; key < keys; key++) {
        const offset = (firstKey + key) * qkDim;
        let sum = 0;
        for (let c = 0; c < qkDim; c++) sum += query[c] * values.k[offset + c];
        scores[key] = sum;
      }
      yield scores;
    }
}

/** Whether the scores of some row pass a test; `scale` is the problem's. */
export function someRow(
  plain: PlainProblem,
  test: (raw: Float64Array, scale: number) => boolean,
): boolean {
  for (const raw of rawScoreRows(plain)) if (test(raw, plain.scale)) return true;
  return false;
}

/** Whether there are rows and the scores of each pass a test; `scale` is the problem's. */
export function everyRow(
  plain: PlainProblem,
  test: (raw: Float64Array, scale: number) => boolean,
): boolean {
  let rows = 0;
  for (const raw of rawScoreRows(plain)) {
    if (!test(raw, plain.scale)) return false;
    rows++;
  }
  return rows > 0;
}

/** The largest of some numbers; −∞ of none, NaN where there is one. */
export function maximum(values: Float64Array): number {
  let largest = -Infinity;
  for (const x of values) largest = Math.max(largest, x);
  return largest;
}
