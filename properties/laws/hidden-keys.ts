import { problemShape, visibleKeys, type Problem } from '../../src/problem/index.js';
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
  const seenBy = (query: number) => visibleKeys(problem, shape, query);
  const { begin, end } = seenBy(spreadChoice(choice, hiddenKeyChoices, shape.queries));
  if (end - begin === shape.keys) throw new NotApplicable('the query sees every key');
  const isCompared = (row: number) => {
    const seen = seenBy(row % shape.queries);
    return seen.begin === seen.end || (begin <= seen.begin && seen.end <= end);
  };
  const transformed = change(problem, (key) => key < begin || key >= end, choice);
  const comparison = { elements: isCompared, rows: isCompared };
  return arrangedViolation({ problem, transformed, comparison, words }, tools);
}
