import { problemShape } from '../../src/problem/index.js';
import type { Law } from '../suite/law.js';
import { NotApplicable } from '../suite/not-applicable.js';
import { arrangedViolation } from './arranged-violation.js';
import { requirePromised } from './promised-problem.js';
import { arrangeProblem, indices } from './transform-problem.js';

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
