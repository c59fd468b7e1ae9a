import { describePlace } from '../../src/audit/index.js';
import { problemMask, problemShape, type Problem } from '../../src/problem/index.js';
import { hasEmptyRows } from '../problems/index.js';
import type { KernelRun, Law } from '../suite/law.js';
import { NotApplicable } from '../suite/not-applicable.js';
import type { ResolvedPromises } from '../suite/promises.js';
import { arrangedViolation } from './arranged-violation.js';
import { placeOfRow } from './compare-runs.js';
import { spreadChoice } from './permutations.js';
import { isPromised } from './promised-problem.js';
import { arrangeProblem, indices } from './transform-problem.js';

/** Numbers of keys that are left to a problem without empty rows. */
const keyChoices = 16;

/**
 * The problem, if it has rows that see no key; else with fewer keys than queries and a mask that ends
 * at the diagonal, so that its first rows see none. Null where the kernel does not promise that.
 */
function withEmptyRows(
  problem: Problem,
  choice: number,
  promises: ResolvedPromises,
): Problem | null {
  if (hasEmptyRows(problem)) return problem;
  const { queries, keys } = problemShape(problem);
  const most = Math.min(queries - 1, keys);
  if (most < 1) return null;
  const count = 1 + spreadChoice(choice, keyChoices, most);
  const causal = promises.causal !== false;
  const left = problem.window?.left ?? -1;
  const masked = {
    ...arrangeProblem(problem, { keys: indices(count) }),
    causal,
    window: causal ? problem.window : { left, right: 0 },
  };
  return isPromised(masked, promises) ? masked : null;
}

/** What is not that of an empty row, in a sentence without its full stop; null for nothing. */
function emptyRowViolation({ problem, shape, out, lse }: KernelRun): string | null {
  const { vDim } = shape;
  const mask = problemMask(problem, shape);
  const isEmpty = (row: number) =>
    mask.ranges(Math.floor(row / shape.queries), row % shape.queries).length === 0;
  const element = out.findIndex((x, i) => x !== 0 && isEmpty(Math.floor(i / vDim)));
  if (element >= 0) {
    const at = { ...placeOfRow(shape, Math.floor(element / vDim)), column: element % vDim };
    return `O at ${describePlace(at)} is ${out[element]}, not 0, though the query sees no key`;
  }
  const row = lse?.findIndex((x, i) => x !== -Infinity && isEmpty(i)) ?? -1;
  if (row < 0) return null;
  return `the LSE at ${describePlace(placeOfRow(shape, row))} is ${lse![row]}, not -Infinity, though the query sees no key`;
}

/** Rows without any key, themselves and beside others. */
export const emptyRows: Law = {
  statement: 'A query that sees no key has O = 0 and LSE = −∞, and leaves other rows alone',
  reason:
    'An empty sum is 0 and its logarithm −∞; a maximum that stays −∞ makes NaN where it is subtracted from itself, and blocks that nobody sees still set up sums.',
  strengths: ['bits', 'bound'],
  usual: 'bound',
  choices: keyChoices,
  notFor: (promises) => {
    if (!promises.emptyRows) return 'masks that leave a query without a key are not promised';
    return promises.causal || promises.window ? null : 'masks are not promised';
  },
  violation: async ({ problem: given, choice }, tools) => {
    const problem = withEmptyRows(given, choice, tools.promises);
    if (problem === null)
      throw new NotApplicable('no row of the problem can be left without a key');
    const violation = emptyRowViolation(await tools.run(problem));
    if (violation !== null) return violation;
    const shape = problemShape(problem);
    const mask = problemMask(problem, shape);
    const heads = indices(shape.batch * shape.heads);
    const queries = indices(shape.queries).filter((query) =>
      heads.some((head) => mask.ranges(head, query).length > 0),
    );
    const rows = { queries };
    if (queries.length === 0 || queries.length === shape.queries) return null;
    const transformed = arrangeProblem(problem, rows);
    if (!isPromised(transformed, tools.promises)) return null;
    const words = 'without the rows that see no key';
    return arrangedViolation({ problem, transformed, rows, words }, tools);
  },
};
