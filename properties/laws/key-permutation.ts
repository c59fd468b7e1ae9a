import { problemShape } from '../../src/problem/index.js';
import type { Law } from '../suite/law.js';
import { NotApplicable } from '../suite/not-applicable.js';
import { exactAttention } from './exact-attention.js';
import { judgedViolation } from './judged-violation.js';
import { permutation } from './permutations.js';
import { arrangeProblem, arrangeReference, indices } from './transform-problem.js';

/** The keys block by block; the last may have fewer. */
function blocksOf(keys: number, blockKeys: number): number[][] {
  return indices(Math.ceil(keys / blockKeys)).map((block) => {
    const first = block * blockKeys;
    return indices(Math.min(blockKeys, keys - first), first);
  });
}

/** An order of the keys, described as in "with all keys permuted". */
interface KeyOrder {
  readonly description: string;
  readonly order: (keys: number, blockKeys: number, choice: number) => number[];
}

const keyOrders: readonly KeyOrder[] = [
  {
    description: 'all keys permuted',
    order: (keys, _, choice) => permutation(keys, choice),
  },
  {
    description: 'the keys permuted within their blocks',
    order: (keys, blockKeys, choice) =>
      blocksOf(keys, blockKeys).flatMap((block) =>
        permutation(block.length, choice).map((i) => block[i]),
      ),
  },
  {
    description: 'whole blocks of keys permuted',
    order: (keys, blockKeys, choice) => {
      const blocks = blocksOf(keys, blockKeys);
      return permutation(blocks.length, choice).flatMap((block) => blocks[block]);
    },
  },
];

/** Orders of each form: the reverse, and random ones. */
const ordersOfEach = 16;

/**
 * The order of the keys, with their values, is not seen by attention without a mask: O and LSE of the
 * permuted problem are judged by the exact attention of the problem as it was.
 */
export const keyPermutation: Law = {
  statement: 'The order of the keys does not matter beyond rounding',
  reason:
    'Sums over keys have no order. A maximum that is not carried from block to block, a column of a block with an exponential of its own, or a K and V that do not belong together make one.',
  strengths: ['bound'],
  usual: 'bound',
  choices: keyOrders.length * ordersOfEach,
  constraints: { causal: false, window: false },
  violation: async ({ problem, choice }, { run, judge, promises }) => {
    if (problem.causal || problem.window !== null)
      throw new NotApplicable('the problem has a mask');
    const { keys } = problemShape(problem);
    const { description, order } = keyOrders[choice % keyOrders.length];
    const which = Math.floor(choice / keyOrders.length);
    const permuted = arrangeProblem(problem, { keys: order(keys, promises.blockKeys, which) });
    const reference = arrangeReference(exactAttention(problem), {}, permuted);
    const judged = judgedViolation(judge(await run(permuted), reference));
    return judged && `with ${description}, ${judged}`;
  },
};
