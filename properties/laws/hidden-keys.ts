import { problemMask, problemShape, type Problem } from '../../src/problem/index.js';
import type { LawCase, LawTools } from '../suite/law.js';
import { NotApplicable } from '../suite/not-applicable.js';
import { arrangedViolation } from './arranged-violation.js';
import { spreadChoice } from './permutations.js';

/** Queries that the choices of a law of hidden keys select among. */
export const hiddenKeyChoices = 32;

/** The problem with something else at its hidden keys. */
export type HiddenKeyChange = (
  problem: Problem,
  isHidden: (key: number) => boolean,
  choice: number,
) => Problem;

/**
 * Whether what stands at keys that a query does not see changes its results: the choice selects a
 * query, `change` replaces what stands at all keys that it does not see, in every head, and every row
 * that sees none of them must keep its bits.
 * @throws NotApplicable where the query sees every key
 */
export async function hiddenKeysViolation(
  { problem, choice }: LawCase,
  tools: LawTools,
  change: HiddenKeyChange,
  words: string,
): Promise<string | null> {
  const shape = problemShape(problem);
  const mask = problemMask(problem, shape);
  const query = spreadChoice(choice, hiddenKeyChoices, shape.queries);
  const isSeen = new Uint8Array(shape.keys);
  for (let head = 0; head < shape.batch * shape.heads; head++)
    for (const { begin, end } of mask.ranges(head, query)) isSeen.fill(1, begin, end);
  if (!isSeen.includes(0)) throw new NotApplicable('the query sees every key');
  const isCompared = (row: number) =>
    mask
      .ranges(Math.floor(row / shape.queries), row % shape.queries)
      .every(({ begin, end }) => !isSeen.subarray(begin, end).includes(0));
  const transformed = change(problem, (key) => isSeen[key] === 0, choice);
  const comparison = { elements: isCompared, rows: isCompared };
  return arrangedViolation({ problem, transformed, comparison, words }, tools);
}
