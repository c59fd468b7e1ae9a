import { problemShape, type Problem } from '../../src/problem/index.js';
import { alignedUp } from '../problems/index.js';
import type { Law, LawStrength } from '../suite/law.js';
import { NotApplicable } from '../suite/not-applicable.js';
import type { ResolvedPromises } from '../suite/promises.js';
import { arrangedViolation, type ArrangedProblems } from './arranged-violation.js';
import { permutation, spreadChoice } from './permutations.js';
import { requirePromised } from './promised-problem.js';
import { arrangeProblem, indices } from './transform-problem.js';

/** How much is added or cut off, by choice, of each form. */
const amountChoices = 8;

/** What the forms go by. */
interface PaddingRequest {
  readonly problem: Problem;
  readonly choice: number;
  readonly strength: LawStrength;
  readonly promises: ResolvedPromises;
}

/** Queries that are added in front, by choice. */
const addedQueries: readonly number[] = [0, 1, 0, 5, 0, 127, 0, 128];

/**
 * Keys added in front, which a left window hides from the rows whose window ended behind the first
 * key already; the other rows are left out. The added keys and queries are those of the problem in
 * another order. Whole blocks of keys, and queries in front as well, where bits are compared.
 */
function addedInFront({ problem, choice, strength, promises }: PaddingRequest) {
  const { queries, keys } = problemShape(problem);
  const left = problem.window?.left ?? -1;
  if (left < 0 || keys === 0) return null;
  const firstRow = Math.max(0, left - (keys - queries));
  if (firstRow >= queries) return null;
  const kept = indices(queries - firstRow, firstRow);
  const isBits = strength === 'bits';
  const count = isBits
    ? promises.blockKeys * (1 + (choice % 2))
    : alignedUp(1 + choice * 19, promises.multiples.keys);
  const repeated = (length: number, of: number) =>
    indices(length).map((i) => permutation(of, choice)[i % of]);
  const before = isBits ? repeated(addedQueries[choice], queries) : [];
  const rows = { queries: [...before, ...kept] };
  const transformed = arrangeProblem(problem, {
    ...rows,
    keys: [...repeated(count, keys), ...indices(keys)],
  });
  const isCompared = (row: number) => row % rows.queries.length >= before.length;
  const comparison = { elements: isCompared, rows: isCompared };
  return {
    problem,
    transformed,
    rows,
    comparison,
    words: `with ${count} unseen ${count === 1 ? 'key' : 'keys'} in front`,
  };
}

/**
 * As many keys as queries cut off at the end, under a mask that ends at the diagonal, which stays
 * where it is: what remains is a problem padded at its end.
 */
function cutAtTheEnd({ problem, choice, promises }: PaddingRequest): ArrangedProblems | null {
  const { queries, keys } = problemShape(problem);
  const endsAtDiagonal = problem.causal || problem.window?.right === 0;
  const { multiples } = promises;
  const unit = Math.max(multiples.queries ?? 1, multiples.keys ?? 1);
  const most = Math.min(queries, keys) - unit;
  if (!endsAtDiagonal || most < 1) return null;
  const count = alignedUp(1 + spreadChoice(choice, amountChoices, most), unit);
  const rows = { queries: indices(queries - count) };
  const transformed = arrangeProblem(problem, { ...rows, keys: indices(keys - count) });
  const words =
    count === 1 ? 'without the last query and key' : `without the last ${count} queries and keys`;
  return { problem, transformed, rows, words };
}

const forms = [cutAtTheEnd, addedInFront] as const;

/**
 * Keys and queries that no row compared sees. Masks are aligned to the bottom right, so that an equal
 * number of queries and keys at the end leaves every diagonal where it is, which a causal mask or a
 * window that ends at the diagonal hides from the rows before (even choices); and any number of keys
 * and of queries in front moves it along with the keys, hidden by a window's left limit (odd choices).
 * A problem has no other masks that could hide more.
 *
 * For kernels that promise bits, keys in front come in multiples of the promised block, so that the
 * others stay where they were in theirs.
 */
export const padding: Law = {
  statement: 'Keys and queries that no row sees, in front or at the end, leave the rows alone',
  reason:
    'Only visible keys take part. Sizes that are taken for one another, offsets of a mask and blocks that are skipped wrongly show.',
  strengths: ['bits', 'bound'],
  usual: 'bound',
  choices: forms.length * amountChoices,
  notFor: ({ causal, window }) => (causal || window ? null : 'masks are not promised'),
  violation: async ({ problem, choice }, tools) => {
    const { strength, promises } = tools;
    const form = forms[choice % forms.length];
    const padded = form({ problem, choice: Math.floor(choice / forms.length), strength, promises });
    if (padded === null) throw new NotApplicable('no mask of the problem hides keys from all rows');
    requirePromised(padded.transformed, promises);
    return arrangedViolation(padded, tools);
  },
};
