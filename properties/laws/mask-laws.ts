import { describePlace } from '../../src/audit/index.js';
import { problemMask, problemShape, type Problem } from '../../src/problem/index.js';
import { hasEmptyRows } from '../problems/index.js';
import { arrangedViolation, placeOfRow } from './compare-runs.js';
import type { ProblemPromises } from './kernel-under-test.js';
import { NotApplicable, type KernelRun, type Law } from './law.js';
import { isPromised, requirePromised, takesMasks } from './promised-problem.js';
import { arrangeProblem, indices, spreadChoice } from './transform-problem.js';

/** A problem, and the same problem with its masks expressed otherwise. */
interface SameMasks {
  readonly problem: Problem;
  readonly transformed: Problem;
  readonly words: string;
}

/** A causal mask, within the problem's window if it has one, and the window that ends at the diagonal. */
function causalAsWindow(problem: Problem): SameMasks {
  const left = problem.window?.left ?? -1;
  return {
    problem: { ...problem, causal: true },
    transformed: { ...problem, causal: false, window: { left, right: 0 } },
    words: `with window [${left}, 0] in place of the causal mask`,
  };
}

/** The last query, which a causal mask lets see every key, with the mask and without. */
function causalOfOneQuery(problem: Problem): SameMasks {
  const { queries } = problemShape(problem);
  const last = { ...arrangeProblem(problem, { queries: [queries - 1] }), window: null };
  return {
    problem: { ...last, causal: false },
    transformed: { ...last, causal: true },
    words: 'with a causal mask, of which the last query alone knows nothing',
  };
}

/**
 * No window, and the narrowest that hides nothing: the last query sees the first key, and the first
 * query the last.
 */
function widestWindow(problem: Problem): SameMasks {
  const { queries, keys } = problemShape(problem);
  const window = { left: Math.max(keys, 1) - 1, right: Math.max(queries, 1) - 1 };
  return {
    problem: { ...problem, window: null },
    transformed: { ...problem, window },
    words: `with window [${window.left}, ${window.right}], which hides nothing`,
  };
}

const forms = [causalAsWindow, causalOfOneQuery, widestWindow] as const;

/** The masks of a problem expressed in two ways; the choice selects the two. */
export const causalIsWindow: Law = {
  statement:
    'A causal mask is window [−1, 0], hides nothing from the last query alone, and a window as wide as the sequences is none',
  reason:
    'Masks that hide the same keys are the same problem, whatever code paths, tunings or blocks a kernel chooses for them.',
  strengths: ['bits', 'bound'],
  usual: 'bound',
  choices: forms.length,
  notFor: ({ causal, window }) => (causal || window ? null : 'masks are not promised'),
  violation: async ({ problem, choice }, tools) => {
    const masked = forms[choice](problem);
    const { promises } = tools;
    requirePromised(masked.problem, promises);
    requirePromised(masked.transformed, promises);
    return arrangedViolation(masked, tools);
  },
};

/** Numbers of keys to leave in a problem without empty rows. */
const keyChoices = 16;

/**
 * The problem, if it has rows that see no key; else with fewer keys than queries and a mask that ends
 * at the diagonal, so that its first rows see none. Null where the kernel does not promise that.
 */
function withEmptyRows(
  problem: Problem,
  choice: number,
  promises: ProblemPromises,
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

/** The first result that is wrong for an empty row, in a sentence without its full stop; null for none. */
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
  // A sink that the LSE has is all that it has, rounded.
  if (problem.sink?.inLse === true) return null;
  const row = lse?.findIndex((x, i) => x !== -Infinity && isEmpty(i)) ?? -1;
  if (row < 0) return null;
  return `the LSE at ${describePlace(placeOfRow(shape, row))} is ${lse![row]}, not -Infinity, though the query sees no key`;
}

/** Whether masks or scores depend on the place of a query, counted from the last of its sequence. */
function goesByPlaces({ causal, window, alibiSlopes }: Problem): boolean {
  return causal || window !== null || alibiSlopes !== undefined;
}

/** Whether some queries, ascending, are the last of their sequences. */
function areLast(problem: Problem, queries: readonly number[]): boolean {
  const shape = problemShape(problem);
  const kept = new Set(queries);
  const { sequences = [{ firstQuery: 0, queries: shape.queries }] } = problem;
  return sequences.every(({ firstQuery, queries: count }) =>
    indices(count - 1, firstQuery).every((query) => !kept.has(query) || kept.has(query + 1)),
  );
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
    return takesMasks(promises) ? null : 'masks are not promised';
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
    if (goesByPlaces(problem) && !areLast(problem, queries)) return null;
    const transformed = arrangeProblem(problem, rows);
    if (!isPromised(transformed, tools.promises)) return null;
    const words = 'without the rows that see no key';
    return arrangedViolation({ problem, transformed, rows, words }, tools);
  },
};
