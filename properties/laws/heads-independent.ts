import { problemShape, type ProblemShape } from '../../src/problem/index.js';
import type { Law } from '../suite/law.js';
import { NotApplicable } from '../suite/not-applicable.js';
import { arrangedViolation } from './arranged-violation.js';
import { permutation } from './permutations.js';
import { arrangeProblem, type Arrangement } from './transform-problem.js';

/** Batches, kv heads and the query heads of each group in another order, the same for all batches. */
function permutedHeads({ batch, kvHeads, groupSize }: ShapeOfHeads, choice: number): Arrangement {
  const order = permutation(kvHeads, choice);
  const members = permutation(groupSize, choice);
  return {
    batches: permutation(batch, choice),
    kvHeads: order,
    heads: order.flatMap((kvHead) => members.map((member) => kvHead * groupSize + member)),
  };
}
type ShapeOfHeads = Pick<ProblemShape, 'batch' | 'kvHeads' | 'groupSize'>;

/** Batches, kv heads and query heads permuted; choice 0: all backwards. */
export const headsIndependent: Law = {
  statement:
    'Batches, groups of heads and the query heads of a group in another order give the same output in that order',
  reason:
    'No head takes part in another; a query head that reads the kv head of another, and results that go astray, show.',
  strengths: ['bits', 'bound'],
  usual: 'bits',
  choices: 16,
  violation: async ({ problem, choice }, tools) => {
    const shape = problemShape(problem);
    if (shape.batch * shape.heads === 1) throw new NotApplicable('the problem has one head');
    const rows = permutedHeads(shape, choice);
    const transformed = arrangeProblem(problem, rows);
    const words = 'with batches and heads in another order';
    return arrangedViolation({ problem, transformed, rows, words }, tools);
  },
};
