import { problemShape } from '../../src/problem/index.js';
import type { Law } from '../suite/law.js';
import { NotApplicable } from '../suite/not-applicable.js';
import { exactAttention } from './exact-attention.js';
import { judgedViolation } from './judged-violation.js';
import { requirePromised } from './promised-problem.js';
import { shiftReference } from './shift-reference.js';
import { arrangeProblem, indices } from './transform-problem.js';

/** How often each key is given, and whether its copies follow one another or all other keys. */
const forms = [
  { copies: 2, adjacent: false },
  { copies: 2, adjacent: true },
  { copies: 3, adjacent: false },
  { copies: 3, adjacent: true },
] as const;

/**
 * Every key with its value r times, unmasked: numerator and denominator of O grow r times, the LSE by
 * ln r. O and LSE are judged by the exact attention of the problem with each key once, ln r added to
 * its LSE, which fp64 has to within an ulp.
 */
export const repeatedKeys: Law = {
  statement: 'Keys given r times leave O and add ln r to the LSE',
  reason:
    'All sums over keys grow r times. Repeated maxima are equal to the bit, and blocks are where there were none: sums that miss a key, a lane or a block do not grow alike.',
  strengths: ['bound'],
  usual: 'bound',
  choices: forms.length,
  constraints: { causal: false, window: false },
  violation: async ({ problem, choice }, { run, judge, promises }) => {
    if (problem.causal || problem.window !== null)
      throw new NotApplicable('the problem has a mask');
    const { keys } = problemShape(problem);
    const { copies, adjacent } = forms[choice];
    const order = indices(keys * copies).map((j) => (adjacent ? Math.floor(j / copies) : j % keys));
    const repeated = arrangeProblem(problem, { keys: order });
    if (keys === 0) throw new NotApplicable('the problem has no keys');
    requirePromised(repeated, promises);
    const added = Math.log(copies);
    const reference = shiftReference(
      exactAttention(problem),
      { lse: added, lseError: 2 ** -52, maximum: 0 },
      repeated,
    );
    const judged = judgedViolation(judge(await run(repeated), reference));
    const where = adjacent ? 'one after the other' : 'all keys after one another';
    return judged && `with every key ${copies} times, ${where}, ${judged}`;
  },
};
