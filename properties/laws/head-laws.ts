import { problemShape, type ProblemShape } from '../../src/problem/index.js';
import { arrangedViolation } from './compare-runs.js';
import { NotApplicable, type Law } from './law.js';
import { requirePromised } from './promised-problem.js';
import { arrangeProblem, indices, permutation, type Arrangement } from './transform-problem.js';

type ShapeOfHeads = Pick<ProblemShape, 'batch' | 'kvHeads' | 'groupSize'>;

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

/** The problem with K and V given to every query head, and as it is, with them shared. */
export const groupedHeads: Law = {
  statement: 'Fewer kv heads are the same as K and V repeated for every query head',
  reason:
    'A group shares its keys and values and nothing else; a wrong kv head shows, and heads packed into one tile that are confused.',
  strengths: ['bits', 'bound'],
  usual: 'bound',
  choices: 1,
  notFor: ({ groupedHeads, groupSizes }) => {
    if (!groupedHeads || groupSizes?.every((size) => size === 1))
      return 'grouped heads are not promised';
    return groupSizes?.includes(1) === false ? 'ungrouped heads are not promised' : null;
  },
  violation: async ({ problem: transformed }, tools) => {
    const { heads, groupSize } = problemShape(transformed);
    if (groupSize === 1) throw new NotApplicable('the problem has no grouped heads');
    const kvHeads = indices(heads).map((head) => Math.floor(head / groupSize));
    const problem = arrangeProblem(transformed, { kvHeads });
    requirePromised(problem, tools.promises);
    const words = `with K and V shared by ${groupSize} query heads each`;
    return arrangedViolation({ problem, transformed, words }, tools);
  },
};
