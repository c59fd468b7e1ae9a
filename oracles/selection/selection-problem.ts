import type { Tensor } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';

/**
 * How the scores that a selection ranks are made. `given`: they are an input. `dot`: q·k, over the heads that share a list.
 * `indexer`: Σ over heads of weight · relu(q·k), as DeepSeek's sparse attention has it. `block-mean`: q · the mean of a block's keys
 * (MoBA). `block-bounds`: Σ over dimensions of max(q · least, q · greatest) of a block's keys (Quest).
 */
export const scoreLaws = ['given', 'dot', 'indexer', 'block-mean', 'block-bounds'] as const;
/** One of {@link scoreLaws}. */
export type SelectionLaw = (typeof scoreLaws)[number];

/** How the scores of heads that share a list become one. */
export const headReductions = ['sum', 'mean', 'max'] as const;
/** One of {@link headReductions}. */
export type HeadReduction = (typeof headReductions)[number];

/** Sizes of a selection. */
export interface SelectionShape {
  readonly batch: number;
  readonly queries: number;
  /** Lists of a query: one for all heads, or one for each head of a group. */
  readonly heads: number;
  /** Places in a list. */
  readonly listed: number;
  /** Keys of a batch entry. */
  readonly keys: number;
  /** What is selected from: keys, or blocks of them. */
  readonly candidates: number;
}

/** Scores to rank, and by which law they come about. */
export interface SelectionScores {
  readonly law: SelectionLaw;
  /** [batch, queries, heads, candidates], of `given`. */
  readonly scores?: Tensor;
  /** [batch, queries, query heads, dim], of all laws but `given`. */
  readonly q?: Tensor;
  /** [batch, keys, key heads, dim], of all laws but `given`. */
  readonly k?: Tensor;
  /** [batch, queries, query heads], of `indexer`; none for ones. */
  readonly weights?: Tensor | undefined;
  /** [batch, keys], factors of the keys of `indexer`; none for ones. */
  readonly keyScale?: Tensor | undefined;
  readonly reduction: HeadReduction;
  /** What becomes of q·k before the weights of `indexer`: relu, as the law has it; the others are mistakes. */
  readonly activation: 'relu' | 'none' | 'absolute';
  /** Keys of a block; 1 where keys are selected. */
  readonly blockSize: number;
}

/** A selection of keys, or of blocks of them: every row lists the largest scores that it may see. */
export interface SelectionProblem extends SelectionScores {
  readonly shape: SelectionShape;
  /** Number of candidates that a row selects; all where it sees fewer. */
  readonly count: number;
  /** First candidate that a row of [batch, queries] may see, and the end of these. */
  readonly first: Int32Array;
  readonly end: Int32Array;
  /** Candidates that every row lists whatever their scores are: its first, its last. */
  readonly forced: { readonly first: boolean; readonly last: boolean };
}

/** Query heads and key heads of a selection, and their dimension; those of `given` are none. */
export function headsOf({ q, k }: Pick<SelectionScores, 'q' | 'k'>): {
  readonly queryHeads: number;
  readonly keyHeads: number;
  readonly dim: number;
} {
  return { queryHeads: q?.shape[2] ?? 0, keyHeads: k?.shape[2] ?? 0, dim: q?.shape[3] ?? 0 };
}

function checkShape(name: string, tensor: Tensor | undefined, wanted: readonly number[]): void {
  if (tensor !== undefined && String(tensor.shape) !== String(wanted))
    throw new RequestError(
      `${name} has shape [${tensor.shape.join(', ')}], and the others ask for [${wanted.join(', ')}]; make them fit`,
    );
}

/** Checks the tensors of a selection. @throws RequestError where they do not fit together */
export function checkSelection(problem: SelectionProblem): void {
  const { law, shape, q, k, weights, keyScale, scores, blockSize, count } = problem;
  const { batch, queries, heads, keys, candidates } = shape;
  if (!(count >= 1)) throw new RequestError(`count is ${count}; give a whole number from 1`);
  if (law === 'given') {
    checkShape('scores', scores, [batch, queries, heads, candidates]);
    return;
  }
  const { queryHeads, keyHeads, dim } = headsOf(problem);
  checkShape('q', q, [batch, queries, queryHeads, dim]);
  checkShape('k', k, [batch, keys, keyHeads, dim]);
  checkShape('weights', weights, [batch, queries, queryHeads]);
  checkShape('k_scale', keyScale, [batch, keys]);
  if (keyHeads === 0 || queryHeads % keyHeads !== 0)
    throw new RequestError(
      `q has ${queryHeads} heads, k has ${keyHeads}; the first must be a multiple of the second`,
    );
  if (heads === 0 || queryHeads % heads !== 0)
    throw new RequestError(
      `q has ${queryHeads} heads, there are lists of ${heads}; the first must be a multiple of the second`,
    );
  if (candidates !== Math.ceil(keys / blockSize))
    throw new RequestError(
      `blocks of ${blockSize} of ${keys} keys are ${Math.ceil(keys / blockSize)}, not ${candidates}`,
    );
}
