import type { Coordinates } from '../../src/audit/index.js';
import type { Problem } from '../../src/problem/index.js';
import type { LawTools } from '../suite/law.js';
import { describeDifference, firstDifference, type Comparison } from './compare-runs.js';
import { exactAttention } from './exact-attention.js';
import { judgedViolation } from './judged-violation.js';
import { arrangeReference, arrangeResults, type RowArrangement } from './transform-problem.js';

/** Two problems of which the rows of one are rows of the other. */
export interface ArrangedProblems {
  readonly problem: Problem;
  readonly transformed: Problem;
  /** Which rows of the problem are those of the transformed one; default the same. */
  readonly rows?: RowArrangement;
  /** Which rows of the transformed problem are compared to the bit; default all. */
  readonly comparison?: Comparison;
  /** What was done, as in `with the queries permuted`. */
  readonly words: string;
}

/** Where a row of the transformed problem stands in the other. */
function placeBefore(at: Coordinates, { batches, heads, queries }: RowArrangement): Coordinates {
  return {
    ...at,
    batch: batches?.[at.batch] ?? at.batch,
    head: heads?.[at.head] ?? at.head,
    query: queries?.[at.query] ?? at.query,
  };
}

/**
 * Whether the rows of a transformed problem come out as those of the problem: to the bit, compared
 * with a run of it, or within the bound around its exact attention, which is that of the rows. What
 * is wrong, in a sentence without its full stop; null for nothing. Places are counted in the problem
 * where bits differ, and in the transformed one where a bound is exceeded.
 */
export async function arrangedViolation(
  { problem, transformed, rows = {}, comparison = {}, words }: ArrangedProblems,
  { strength, run, judge }: LawTools,
): Promise<string | null> {
  if (strength === 'bits') {
    const usual = arrangeResults(await run(problem), rows);
    const found = firstDifference(usual, await run(transformed), comparison);
    if (found === null) return null;
    return describeDifference({ ...found, at: placeBefore(found.at, rows) }, 'at first', words);
  }
  const other = await run(transformed);
  const reference = arrangeReference(exactAttention(problem), rows, transformed);
  const violation = judgedViolation(judge(other, reference));
  return violation && `${words}, ${violation}`;
}
