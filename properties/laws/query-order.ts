import { problemShape } from '../../src/problem/index.js';
import type { Law } from '../suite/law.js';
import { NotApplicable } from '../suite/not-applicable.js';
import { arrangedViolation } from './arranged-violation.js';
import { permutation } from './permutations.js';
import { arrangeProblem } from './transform-problem.js';

/** Queries permuted, without masks, which go by a query's place; choice 0: backwards. */
export const queryOrder: Law = {
  statement: 'Without masks, queries in another order give the same rows in that order',
  reason:
    'No row takes part in another, wherever in a tile it stands; a maximum, a sum or a rescale that is taken of another row shows.',
  strengths: ['bits', 'bound'],
  usual: 'bound',
  choices: 16,
  constraints: { causal: false, window: false },
  violation: async ({ problem, choice }, tools) => {
    const { queries } = problemShape(problem);
    if (queries < 2) throw new NotApplicable('the problem has one query');
    const rows = { queries: permutation(queries, choice) };
    const transformed = arrangeProblem(problem, rows);
    const words = 'with the queries in another order';
    return arrangedViolation({ problem, transformed, rows, words }, tools);
  },
};
