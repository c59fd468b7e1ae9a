import { problemShape } from '../../src/problem/index.js';
import type { Law } from '../suite/law.js';
import { describeDifference, firstDifference } from './compare-runs.js';
import { permutation } from './permutations.js';
import { arrangeProblem, copyProblem } from './transform-problem.js';

/**
 * The same problem twice, each time in memory of its own. Choice 0: one run after the other; choice 1:
 * with another problem of the same sizes, its queries and keys backwards, in between.
 */
export const determinism: Law = {
  statement: 'The same problem gives the same bits again',
  reason:
    'Nothing in a kernel depends on what ran before; atomics whose order is open, races and memory that is read before it is written do.',
  strengths: ['bits'],
  usual: 'bits',
  choices: 2,
  violation: async ({ problem, choice }, { run }) => {
    const { queries, keys } = problemShape(problem);
    const first = await run(copyProblem(problem));
    if (choice === 1)
      await run(
        arrangeProblem(problem, { queries: permutation(queries, 0), keys: permutation(keys, 0) }),
      );
    const difference = firstDifference(first, await run(copyProblem(problem)));
    const again = choice === 1 ? 'again, after another problem' : 'again';
    return difference && describeDifference(difference, 'at first', again);
  },
};
