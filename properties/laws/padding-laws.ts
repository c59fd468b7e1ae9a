import { problemShape, rowPlaces, type Problem } from '../../src/problem/index.js';
import { alignedUp } from '../problems/index.js';
import { arrangedViolation, type ArrangedProblems } from './compare-runs.js';
import type { ProblemPromises } from './kernel-under-test.js';
import { NotApplicable, type Law, type LawStrength } from './law.js';
import { requirePromised } from './promised-problem.js';
import { arrangeProblem, indices, permutation, spreadChoice } from './transform-problem.js';

/** Number of rows, or of counts of rows, tried in each form. */
const rowChoices = 16;

/** The last rows alone: masks are aligned to the bottom right, so that they see the same keys. */
function lastRows(problem: Problem, choice: number, multiple: number): ArrangedProblems | null {
  const { queries } = problemShape(problem);
  if (queries <= multiple) return null;
  const count = alignedUp(1 + spreadChoice(choice, rowChoices, queries - multiple), multiple);
  const rows = { queries: indices(count, queries - count) };
  const words = count === 1 ? 'with the last row alone' : `with the last ${count} rows alone`;
  return { problem, transformed: arrangeProblem(problem, rows), rows, words };
}

/**
 * Under a causal mask, one row over the keys up to its diagonal, as when its token was decoded. Its
 * diagonal stays the bottom right corner.
 */
function oneDecodedRow(problem: Problem, choice: number): ArrangedProblems | null {
  const shape = problemShape(problem);
  if (!problem.causal) return null;
  const query = spreadChoice(choice, rowChoices, shape.queries);
  const place = rowPlaces(problem, shape)(0, query);
  const behind = Math.min(place.keys, place.query + place.keys - place.queries + 1);
  const end = place.firstKey + behind;
  if (behind < 1 || (shape.queries === 1 && end === shape.keys)) return null;
  const rows = { queries: [query] };
  const transformed = arrangeProblem(problem, { ...rows, keys: indices(end) });
  return { problem, transformed, rows, words: 'with the row decoded alone' };
}

const decodedForms = [lastRows, oneDecodedRow] as const;

/**
 * The last rows of a problem on their own (even choices), and under a causal mask any row on the keys
 * up to its diagonal (odd ones).
 */
export const decodeEqualsPrefill: Law = {
  statement: 'Rows computed alone, as in decoding, are those of the whole problem',
  reason:
    'A row depends on the keys that it sees and not on its neighbours. A kernel that works otherwise for fewer rows gives other bits, within the bound.',
  strengths: ['bits', 'bound'],
  usual: 'bound',
  choices: decodedForms.length * rowChoices,
  violation: async ({ problem, choice }, tools) => {
    const form = decodedForms[choice % decodedForms.length];
    const alone = form(
      problem,
      Math.floor(choice / decodedForms.length),
      tools.promises.multiples.queries ?? 1,
    );
    if (alone === null) throw new NotApplicable('the problem has no row to compute alone');
    requirePromised(alone.transformed, tools.promises);
    return arrangedViolation(alone, tools);
  },
};

/** Number of amounts to add or cut off, in each form. */
const amountChoices = 8;

/** Arguments of the padding forms. */
interface PaddingRequest {
  readonly problem: Problem;
  readonly choice: number;
  readonly strength: LawStrength;
  readonly promises: ProblemPromises;
}

/** Queries that are added in front, by choice. */
const addedQueries: readonly number[] = [0, 1, 0, 5, 0, 127, 0, 128];

/**
 * Keys added in front, which a left window hides from the rows whose window ended behind the first key
 * already; other rows are left out. The added keys and queries are those of the problem in another
 * order. Whole blocks of keys, and queries in front as well, where bits are compared.
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

const paddedForms = [cutAtTheEnd, addedInFront] as const;

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
  choices: paddedForms.length * amountChoices,
  without: ['packed'],
  notFor: ({ causal, window }) => (causal || window ? null : 'masks are not promised'),
  violation: async ({ problem, choice }, tools) => {
    const { strength, promises } = tools;
    const form = paddedForms[choice % paddedForms.length];
    const padded = form({
      problem,
      choice: Math.floor(choice / paddedForms.length),
      strength,
      promises,
    });
    if (padded === null) throw new NotApplicable('no mask of the problem hides keys from all rows');
    requirePromised(padded.transformed, promises);
    return arrangedViolation(padded, tools);
  },
};
