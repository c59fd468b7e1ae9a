import { problemMask, problemShape, spanOf, type Problem } from '../../src/problem/index.js';
import { alignedUp } from '../problems/index.js';
import type { Law } from '../suite/law.js';
import { NotApplicable } from '../suite/not-applicable.js';
import { arrangedViolation, type ArrangedProblems } from './arranged-violation.js';
import { spreadChoice } from './permutations.js';
import { requirePromised } from './promised-problem.js';
import { arrangeProblem, indices } from './transform-problem.js';

/** Numbers of rows, or rows, that are tried of each form. */
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
  const { end } = spanOf(problemMask(problem, shape).ranges(0, query));
  if (end === 0 || (shape.queries === 1 && end === shape.keys)) return null;
  const rows = { queries: [query] };
  const transformed = arrangeProblem(problem, { ...rows, keys: indices(end) });
  return { problem, transformed, rows, words: 'with the row decoded alone' };
}

const forms = [lastRows, oneDecodedRow] as const;

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
  choices: forms.length * rowChoices,
  violation: async ({ problem, choice }, tools) => {
    const form = forms[choice % forms.length];
    const alone = form(
      problem,
      Math.floor(choice / forms.length),
      tools.promises.multiples.queries ?? 1,
    );
    if (alone === null) throw new NotApplicable('the problem has no row to compute alone');
    requirePromised(alone.transformed, tools.promises);
    return arrangedViolation(alone, tools);
  },
};
