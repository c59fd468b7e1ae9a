import {
  broadcastStrides,
  changeFeatures,
  dropFeature,
  keepFeature,
  type BlockMask,
  type BooleanTensor,
  type IntegerTensor,
  type KeyLists,
  type Problem,
  type ProblemFeatures,
  type ProblemShape,
  type Sequence,
  type Tensor,
} from '../../../src/problem/index.js';
import { arrangeLists } from './arrange-lists.js';

/** The batches, query heads, queries and keys to keep, in order. */
export interface FeatureSelection {
  readonly batches: readonly number[];
  readonly heads: readonly number[];
  /** Kept kv heads, where these are picked. */
  readonly kvHeads?: readonly number[];
  readonly queries: readonly number[];
  readonly keys: readonly number[];
}

/** Sizes of the problem that features are arranged in. */
export type FeatureFrame = Pick<ProblemShape, 'batch' | 'heads' | 'queries' | 'keys'>;

/** The rows that one sequence, or all batches, are taken from. */
interface SequenceSelection {
  readonly queries: readonly number[];
  readonly keys: readonly number[];
}

type Elements = Tensor['data'] | Int32Array;

function elementsLike<T extends Elements>(like: T, length: number): T {
  return new (like.constructor as new (length: number) => T)(length);
}

function isWhole(indices: readonly number[], count: number): boolean {
  return indices.length === count && indices.every((index, i) => index === i);
}

/**
 * A tensor that broadcasts to [batch, heads, queries, keys], restricted to the kept ones. Its batches are
 * sequences where these are packed; each sequence has its own selection then.
 */
function selectBroadcast<T extends Elements>(
  { shape, data }: { readonly shape: readonly number[]; readonly data: T },
  { batches, heads }: Pick<FeatureSelection, 'batches' | 'heads'>,
  selections: readonly SequenceSelection[],
): { readonly shape: readonly number[]; readonly data: T } {
  const sizes = [1, 1, 1, 1, ...shape].slice(-4);
  const strides = broadcastStrides(shape);
  const most = (rows: (selection: SequenceSelection) => readonly number[]) =>
    selections.reduce((largest, selection) => Math.max(largest, rows(selection).length), 0);
  const ofEach = selections.length > 1 && (sizes[2] > 1 || sizes[3] > 1);
  const left = [
    sizes[0] > 1 || ofEach ? batches.length : 1,
    sizes[1] > 1 ? heads.length : 1,
    sizes[2] > 1 ? most(({ queries }) => queries) : 1,
    sizes[3] > 1 ? most(({ keys }) => keys) : 1,
  ];
  const out = elementsLike(
    data,
    left.reduce((product, size) => product * size, 1),
  );
  let at = 0;
  for (let b = 0; b < left[0]; b++) {
    const { queries, keys } = selections[selections.length === 1 ? 0 : b];
    for (let h = 0; h < left[1]; h++)
      for (let q = 0; q < left[2]; q++)
        for (let k = 0; k < left[3]; k++, at++) {
          const query = sizes[2] > 1 ? queries[q] : 0;
          const key = sizes[3] > 1 ? keys[k] : 0;
          // Behind the rows of a shorter sequence stands what nobody reads.
          if (query === undefined || key === undefined) continue;
          out[at] =
            data[
              batches[b] * strides.batch +
                heads[h] * strides.head +
                query * strides.query +
                key * strides.key
            ];
        }
  }
  return { shape: left, data: out };
}

/** The elements of rows of [length] or [batch, length]. */
function selectRows(
  { shape, data }: IntegerTensor,
  batches: readonly number[],
  rows: readonly number[],
): IntegerTensor {
  const isShared = shape.length === 1;
  const length = shape.at(-1) ?? 0;
  const of = (batch: number) => rows.map((row) => data[batch * length + row]);
  return isShared
    ? { shape: [rows.length], data: Int32Array.from(of(0)) }
    : { shape: [batches.length, rows.length], data: Int32Array.from(batches.flatMap(of)) };
}

/** The slopes of [heads] or [batch, heads]. */
function selectSlopes(
  slopes: Tensor,
  batches: readonly number[],
  heads: readonly number[],
): Tensor {
  const { shape, data } = slopes;
  const all = shape.length === 1 ? [0] : batches;
  const width = shape.at(-1) ?? 0;
  const out = elementsLike(data, all.length * heads.length);
  all.forEach((batch, b) =>
    heads.forEach((head, h) => (out[b * heads.length + h] = data[batch * width + head])),
  );
  return {
    ...slopes,
    shape: shape.length === 1 ? [heads.length] : [all.length, heads.length],
    data: out,
  };
}

/** The blocks of the first rows and keys: as many as are left of each. */
function selectBlocks(
  blocks: BlockMask,
  { batches, heads, queries, keys }: FeatureSelection,
): BlockMask {
  const { counts, indices, blockQueries, blockKeys } = blocks;
  const strides = broadcastStrides([...counts.shape, 1]);
  const [wideBatch, wideHead] = [strides.batch > 0, strides.head > 0];
  const capacity = indices.shape.at(-1) ?? 0;
  const rows = Math.ceil(queries.length / blockQueries);
  const columns = Math.ceil(keys.length / blockKeys);
  const lists = (wideBatch ? batches : [0]).flatMap((batch) =>
    (wideHead ? heads : [0]).flatMap((head) =>
      Array.from({ length: rows }, (_, row) => {
        const at = batch * strides.batch + head * strides.head + row * strides.query;
        const listed = indices.data.subarray(at * capacity, at * capacity + counts.data[at]);
        return Array.from(listed).filter((column) => column < columns);
      }),
    ),
  );
  const leading = [wideBatch ? batches.length : 1, wideHead ? heads.length : 1, rows];
  const data = new Int32Array(lists.length * columns);
  lists.forEach((list, row) => data.set(list, row * columns));
  return {
    counts: { shape: leading, data: Int32Array.from(lists, ({ length }) => length) },
    indices: { shape: [...leading, columns], data },
    blockQueries,
    blockKeys,
  };
}

/** The packed sequences restricted to ascending queries and keys, and the kept rows of each. */
function selectSequences(
  sequences: readonly Sequence[],
  { queries, keys }: FeatureSelection,
): { readonly sequences: readonly Sequence[]; readonly selections: SequenceSelection[] } {
  let [firstQuery, firstKey] = [0, 0];
  const within = (rows: readonly number[], first: number, count: number) =>
    rows.filter((row) => row >= first && row < first + count).map((row) => row - first);
  const selections = sequences.map((sequence) => ({
    queries: within(queries, sequence.firstQuery, sequence.queries),
    keys: within(keys, sequence.firstKey, sequence.keys),
  }));
  const kept = selections.map((selection) => {
    const sequence = {
      firstQuery,
      queries: selection.queries.length,
      firstKey,
      keys: selection.keys.length,
    };
    firstQuery += sequence.queries;
    firstKey += sequence.keys;
    return sequence;
  });
  return { sequences: kept, selections };
}

/**
 * The features of a problem whose rows are picked or reordered: those of the rows, heads and batches that are
 * left. Features that depend on places (ALiBi, a prefix, blocks, and for packed sequences which rows belong
 * together) depend on the new places: see `arrangementLoss` for when this is another problem.
 */
export function arrangeFeatures(
  problem: Problem | ProblemFeatures,
  selection: FeatureSelection,
): ProblemFeatures {
  const { batches, heads, queries, keys } = selection;
  const packed =
    problem.sequences === undefined ? null : selectSequences(problem.sequences, selection);
  const selections = packed?.selections ?? [{ queries, keys }];
  const ofBatches = packed === null ? batches : packed.sequences.map((_, index) => index);
  const broadcast = <T extends Elements>(tensor: {
    readonly shape: readonly number[];
    readonly data: T;
  }) => selectBroadcast(tensor, { batches: ofBatches, heads }, selections);
  const truths = (tensor: BooleanTensor): BooleanTensor => broadcast(tensor);
  return changeFeatures(problem, {
    mask: truths,
    bias: (bias) => ({ ...bias, ...broadcast(bias) }),
    alibiSlopes: (slopes) => selectSlopes(slopes, ofBatches, heads),
    sink: (sink) => ({ ...sink, logits: selectSlopes(sink.logits, [0], heads) }),
    segments: (segments) => ({
      queries: selectRows(segments.queries, batches, queries),
      keys: selectRows(segments.keys, batches, keys),
    }),
    prefix: keepFeature,
    blockMask: (blocks) => selectBlocks(blocks, selection),
    keyLists: (lists) =>
      arrangeLists(lists, { ...selection, kvHeads: selection.kvHeads ?? null }, problem.sequences),
    dropout: (dropout) => ({ ...dropout, kept: truths(dropout.kept) }),
    sequences: () => packed?.sequences,
    keyRanges: dropFeature,
    rows: dropFeature,
  });
}

/** Whether lists of blocks, or for blocks of queries, would be others. */
function listLoss(
  { blockKeys, blockQueries }: KeyLists,
  { queries, keys }: FeatureSelection,
): boolean {
  return (blockKeys > 1 && !isPrefix(keys)) || (blockQueries > 1 && !isPrefix(queries));
}

function isPrefix(rows: readonly number[]): boolean {
  return rows.every((row, i) => row === i);
}

function isAscending(rows: readonly number[]): boolean {
  return rows.every((row, i) => i === 0 || row > rows[i - 1]);
}

/**
 * The reason that an arrangement of rows and keys makes another problem of one with such features, though masks, biases and
 * weights go with their rows: in a clause; null where it does not. The effect of other lengths on causal masks,
 * windows and ALiBi is the caller's concern.
 */
export function arrangementLoss(
  { alibiSlopes, prefix, blockMask, keyLists, sequences, rows }: ProblemFeatures,
  frame: FeatureFrame,
  selection: FeatureSelection,
): string | null {
  const { queries, keys } = selection;
  if (isWhole(queries, frame.queries) && isWhole(keys, frame.keys)) return null;
  if (rows !== undefined) return 'its rows are a sample';
  if (sequences !== undefined && !(isAscending(queries) && isAscending(keys)))
    return 'its rows are in packed sequences';
  if (blockMask !== undefined && !(isPrefix(queries) && isPrefix(keys)))
    return 'its mask goes by blocks';
  if (keyLists !== undefined && listLoss(keyLists, selection)) return 'its lists go by blocks';
  const areKeysWhole = isPrefix(keys) && keys.length === frame.keys;
  if (prefix !== undefined && prefix > 0 && !areKeysWhole) return 'its prefix goes by places';
  if (alibiSlopes !== undefined && !(isConsecutive(queries) && isConsecutive(keys)))
    return 'its ALiBi goes by places';
  return null;
}

function isConsecutive(rows: readonly number[]): boolean {
  return rows.every((row, i) => i === 0 || row === rows[i - 1] + 1);
}
