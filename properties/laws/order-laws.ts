import { problemShape } from '../../src/problem/index.js';
import { featuresOf } from '../problems/index.js';
import { arrangedViolation, describeDifference, firstDifference } from './compare-runs.js';
import { NotApplicable, type Law } from './law.js';
import {
  arrangeProblem,
  arrangeTensors,
  arrangeReference,
  copyProblem,
  indices,
  permutation,
} from './transform-problem.js';
import { exactAttention, judgedViolation } from './within-bound.js';

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
      await run({
        ...arrangeTensors(problem, {
          queries: permutation(queries, 0),
          keys: permutation(keys, 0),
        }),
        ...featuresOf(problem),
      });
    const difference = firstDifference(first, await run(copyProblem(problem)));
    const again = choice === 1 ? 'again, after another problem' : 'again';
    return difference && describeDifference(difference, 'at first', again);
  },
};

/** Queries permuted, without masks, which depend on a query's place; choice 0: backwards. */
export const queryOrder: Law = {
  statement: 'Without masks, queries in another order give the same rows in that order',
  reason:
    'No row takes part in another, wherever in a tile it stands; a maximum, a sum or a rescale that is taken of another row shows.',
  strengths: ['bits', 'bound'],
  usual: 'bound',
  choices: 16,
  constraints: { causal: false, window: false },
  without: ['alibi', 'block-mask', 'packed'],
  violation: async ({ problem, choice }, tools) => {
    const { queries } = problemShape(problem);
    if (queries < 2) throw new NotApplicable('the problem has one query');
    const rows = { queries: permutation(queries, choice) };
    const transformed = arrangeProblem(problem, rows);
    const words = 'with the queries in another order';
    return arrangedViolation({ problem, transformed, rows, words }, tools);
  },
};

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

export const keyOrders: readonly KeyOrder[] = [
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
  without: ['alibi', 'block-mask', 'packed', 'prefix'],
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
