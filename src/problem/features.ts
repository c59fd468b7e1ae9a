import type { Tensor } from '../formats/index.js';
import type { KeyRange } from './key-ranges.js';

/** Truths in row-major order: 0 is false, all else true. */
export interface BooleanTensor {
  readonly shape: readonly number[];
  readonly data: Uint8Array;
}

/** Integers in row-major order. */
export interface IntegerTensor {
  readonly shape: readonly number[];
  readonly data: Int32Array;
}

/** A key without value whose weight joins the row sum. */
export interface Sink {
  /** [heads]: its score in natural units, neither scaled nor capped; −∞ for none. */
  readonly logits: Tensor;
  /** Whether the LSE includes it too. */
  readonly inLse: boolean;
}

/** Documents: a query sees the keys of its own segment. Both [length], or [batch, length]. */
export interface Segments {
  readonly queries: IntegerTensor;
  readonly keys: IntegerTensor;
}

/** The blocks of keys that each block of queries sees, as in flex_attention's BlockMask. */
export interface BlockMask {
  /** [batch or 1, heads or 1, blocks of queries]: number of valid entries of `indices`; leading sizes may be left out. */
  readonly counts: IntegerTensor;
  /** [batch or 1, heads or 1, blocks of queries, blocks of keys]: the blocks seen, in any order. */
  readonly indices: IntegerTensor;
  readonly blockQueries: number;
  readonly blockKeys: number;
}

/** The keys that each query sees, as lists: sparse decode, and selections of blocks. */
export interface KeyLists {
  /**
   * [batch, queries or blocks of queries, kv heads or 1, n], of packed sequences [1, queries of all, …]: numbers of keys, or
   * of blocks of keys, of the query's sequence, in any order and none twice; −1 is no entry.
   */
  readonly indices: IntegerTensor;
  /** Keys of a block; 1 where entries are keys. */
  readonly blockKeys: number;
  /** Queries that share a list; 1 with packed sequences. */
  readonly blockQueries: number;
  /** The place on the axis of kv heads that all heads read: set in the problem of a single head. */
  readonly ofHead?: number | undefined;
  /** Whether the kernel was given slots of its cache in place of positions. */
  readonly areSlots?: boolean;
}

/** Weights that a kernel keeps, after the row sum: O = Σ p·kept/(1 − probability)·v / Σ p. */
export interface Dropout {
  /** Broadcastable to [batch, heads, queries, keys]. */
  readonly kept: BooleanTensor;
  /** 0 ≤ probability < 1. */
  readonly probability: number;
}

/** One of the sequences that are packed one behind the other: its queries see its keys only. */
export interface Sequence {
  readonly firstQuery: number;
  readonly queries: number;
  readonly firstKey: number;
  readonly keys: number;
}

/** The rows of a longer problem that a sample of a kernel's results covers. */
export interface RowSelection {
  /** [batch, heads, queries]: the number of each row's query in the problem that it is taken from. */
  readonly queries: Int32Array;
  /** Number of queries of each head of that problem. */
  readonly of: number;
}

/**
 * The tables that q and k were rotated by before the kernel had them, [positions, pairs], or with every number twice,
 * [positions, 2·pairs], as frameworks keep them. No attention kernel reads them; they show whether a fault is a missing
 * rotation.
 */
export interface RotaryTables {
  readonly cos: Tensor;
  readonly sin: Tensor;
}

/** Features that a problem may have beside q, k, v, scale, causal, window and softcap. */
export interface ProblemFeatures {
  /** True = visible; broadcastable to [batch, heads, queries, keys]. Both it and every other mask must allow a key. */
  readonly mask?: BooleanTensor;
  /** Added to the score after the softcap; broadcastable to [batch, heads, queries, keys]. Finite, or −∞. */
  readonly bias?: Tensor;
  /** [heads] or [batch, heads]: the score gets −slope·|i + keys − queries − j|, the distance from the diagonal. */
  readonly alibiSlopes?: Tensor;
  readonly sink?: Sink;
  readonly segments?: Segments;
  /** Prefix-LM: keys before it are seen by every query, whatever causal and window say. */
  readonly prefix?: number;
  readonly blockMask?: BlockMask;
  /** A query sees the keys that its list has, where the other masks allow them too. */
  readonly keyLists?: KeyLists;
  readonly dropout?: Dropout;
  /**
   * Packed sequences, in order and without gaps: batch is 1, and causal, window, ALiBi, prefix and the batch of
   * masks, biases and slopes are each sequence's own (a broadcastable tensor's queries and keys count within it).
   */
  readonly sequences?: readonly Sequence[];
  /**
   * The keys of a part of a split problem, of each sequence (or batch entry), counted within it: no others are seen.
   * All other masks are as without it.
   */
  readonly keyRanges?: readonly KeyRange[];
  /** The rows of a sample; masks, biases and sequences are those of the whole problem. */
  readonly rows?: RowSelection;
}

/** A feature of a problem, by the name of its member; `scales` are those of q, k or v. */
export type FeatureName = keyof ProblemFeatures | 'scales';

/** The features, and their names in a sentence. */
export const featureNames = {
  mask: 'a mask',
  bias: 'a bias',
  alibiSlopes: 'ALiBi slopes',
  sink: 'a sink',
  segments: 'segments',
  prefix: 'a prefix',
  blockMask: 'a block mask',
  keyLists: 'lists of keys',
  dropout: 'dropout',
  sequences: 'packed sequences',
  keyRanges: 'ranges of keys',
  rows: 'a sample of rows',
  scales: 'factors of q, k or v',
} as const satisfies Readonly<Record<FeatureName, string>>;

/** The features that a problem has. */
export function problemFeatures(
  problem: ProblemFeatures & Readonly<Record<'q' | 'k' | 'v', Tensor>>,
): FeatureName[] {
  const has = (name: FeatureName): boolean =>
    name === 'scales'
      ? [problem.q, problem.k, problem.v].some(({ scales }) => scales !== undefined)
      : problem[name] !== undefined;
  return (Object.keys(featureNames) as FeatureName[]).filter(has);
}
