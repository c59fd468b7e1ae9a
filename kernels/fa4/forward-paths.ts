import { visibleKeys, type ProblemShape } from '../../src/problem/index.js';

/** How operands find their way to a tile of queries. */
export interface ForwardPaths {
  /** The keys begin ≤ j < end that a query sees, j up to the end of the last block. */
  readonly visibleKeys: typeof visibleKeys;
  /** The kv head, counted over [batch · kv heads], that a head of [batch · heads] reads. */
  readonly kvHead: (head: number, shape: ProblemShape) => number;
  /** Of the blocks in the order visited: the one whose keys, or values, are read for block `index`. */
  readonly keysFrom: (index: number, blocks: number) => number;
  readonly valuesFrom: (index: number, blocks: number) => number;
}

/** The paths of FlashAttention-4's forward. */
export const kernelPaths: ForwardPaths = {
  visibleKeys,
  kvHead: (head, { heads, kvHeads, groupSize }) =>
    Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize),
  keysFrom: (index) => index,
  valuesFrom: (index) => index,
};
