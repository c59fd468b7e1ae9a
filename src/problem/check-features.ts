import { decodeToFloat64, formats, type Tensor } from '../formats/index.js';
import { RequestError } from '../request-error.js';
import { readFeatures } from './each-feature.js';
import type { BlockMask, Sequence } from './features.js';
import type { KeyRange } from './key-ranges.js';
import { checkListEntries, checkListSizes } from './masks/check-lists.js';
import type { Problem, ProblemShape } from './problem.js';

function requireBroadcast(
  name: string,
  { shape }: { readonly shape: readonly number[] },
  whole: readonly number[],
): void {
  const sizes = [1, 1, 1, 1, ...shape].slice(-4);
  if (shape.length > 4 || sizes.some((size, axis) => size !== 1 && size !== whole[axis]))
    throw new RequestError(
      `${name} has shape [${shape.join(', ')}]; give one that is broadcast to [${whole.join(', ')}]`,
    );
}

/** @throws RequestError for sequences that do not tile the queries and keys in order */
function checkSequences(sequences: readonly Sequence[], queries: number, keys: number): void {
  let [nextQuery, nextKey] = [0, 0];
  sequences.forEach((sequence, index) => {
    const sizes = [sequence.queries, sequence.keys];
    if (sizes.some((size) => !Number.isSafeInteger(size) || size < 0))
      throw new RequestError(
        `sequence ${index} has ${sequence.queries} queries and ${sequence.keys} keys; give whole numbers, 0 or more`,
      );
    if (sequence.firstQuery !== nextQuery || sequence.firstKey !== nextKey)
      throw new RequestError(
        `sequence ${index} begins at query ${sequence.firstQuery} and key ${sequence.firstKey}, the one before ends at ${nextQuery} and ${nextKey}; make them meet`,
      );
    nextQuery += sequence.queries;
    nextKey += sequence.keys;
  });
  if (nextQuery !== queries || nextKey !== keys)
    throw new RequestError(
      `the sequences have ${nextQuery} queries and ${nextKey} keys, q and k have ${queries} and ${keys}; make them equal`,
    );
}

/**
 * The sizes that broadcastable tensors are broadcast to: those of the whole problem where rows are a sample
 * of it, and of a sequence where there are several (the longest).
 */
function wholeSizes(problem: Problem, shape: ProblemShape): readonly number[] {
  const { sequences, rows } = problem;
  const { batch, heads, queries, keys } = shape;
  if (sequences === undefined) return [batch, heads, rows?.of ?? queries, keys];
  const most = (size: (sequence: Sequence) => number) =>
    sequences.reduce((largest, sequence) => Math.max(largest, size(sequence)), 0);
  return [sequences.length, heads, most((one) => one.queries), most((one) => one.keys)];
}

/** Number of elements decoded at a time. */
const chunk = 1 << 16;

function requireFinite(name: string, { data, format }: Tensor, orMinusInfinity: boolean): void {
  const values = new Float64Array(Math.min(chunk, data.length));
  for (let first = 0; first < data.length; first += chunk) {
    const count = Math.min(chunk, data.length - first);
    decodeToFloat64(data, formats[format], values, first, first + count);
    for (let i = 0; i < count; i++) {
      if (Number.isFinite(values[i]) || (orMinusInfinity && values[i] === -Infinity)) continue;
      throw new RequestError(
        `${name} has ${values[i]} at element ${first + i}; give finite numbers${orMinusInfinity ? ', or -inf for none' : ''}`,
      );
    }
  }
}

function requireShape(
  name: string,
  { shape }: { readonly shape: readonly number[] },
  allowed: readonly (readonly number[])[],
): void {
  const isAllowed = allowed.some(
    (sizes) => sizes.length === shape.length && sizes.every((size, axis) => size === shape[axis]),
  );
  if (!isAllowed)
    throw new RequestError(
      `${name} has shape [${shape.join(', ')}]; give it ${allowed.map((sizes) => `[${sizes.join(', ')}]`).join(' or ')}`,
    );
}

function checkBlockSizes(blocks: BlockMask, [batch, heads, queries]: readonly number[]): void {
  const { counts, indices, blockQueries, blockKeys } = blocks;
  for (const [name, size] of Object.entries({ block_q: blockQueries, block_k: blockKeys }))
    if (!Number.isSafeInteger(size) || size < 1)
      throw new RequestError(`${name} is ${size}; give a whole number, 1 or more`);
  const rows = Math.ceil(queries / blockQueries);
  const capacity = indices.shape.at(-1) ?? 0;
  requireBroadcast('kv_num_blocks', { shape: [...counts.shape, 1] }, [batch, heads, rows, 1]);
  requireBroadcast('kv_indices', { shape: [...indices.shape.slice(0, -1), 1] }, [
    batch,
    heads,
    rows,
    1,
  ]);
  if (counts.data.length * capacity !== indices.data.length)
    throw new RequestError(
      `kv_num_blocks has shape [${counts.shape.join(', ')}], kv_indices [${indices.shape.join(', ')}]; all sizes but the last of kv_indices must be those of kv_num_blocks`,
    );
}

function checkBlockNumbers({ counts, indices, blockKeys }: BlockMask, keys: number): void {
  const columns = Math.ceil(keys / blockKeys);
  const capacity = indices.shape.at(-1) ?? 0;
  counts.data.forEach((count, row) => {
    if (count < 0 || count > capacity)
      throw new RequestError(
        `kv_num_blocks has ${count} at element ${row}; give 0 to ${capacity}, as many as kv_indices holds`,
      );
    for (let i = row * capacity; i < row * capacity + count; i++)
      if (indices.data[i] < 0 || indices.data[i] >= columns)
        throw new RequestError(
          `kv_indices has ${indices.data[i]} at element ${i}; there are ${columns} blocks of ${blockKeys} keys`,
        );
  });
}

/** @throws RequestError for ranges that are not one for each sequence, within its keys */
function checkKeyRanges(keyRanges: readonly KeyRange[], keys: readonly number[]): void {
  if (keyRanges.length !== keys.length)
    throw new RequestError(
      `there are ${keyRanges.length} ranges of keys for ${keys.length} sequences; give one for each`,
    );
  keyRanges.forEach(({ begin, end }, sequence) => {
    const isWhole = Number.isSafeInteger(begin) && Number.isSafeInteger(end);
    if (!isWhole || begin < 0 || end < begin || end > keys[sequence])
      throw new RequestError(
        `the range of keys of sequence ${sequence} is ${begin} to ${end}; give one within its ${keys[sequence]} keys`,
      );
  });
}

/**
 * Checks features but for the elements of their tensors: see `checkFeatureElements`.
 * @throws RequestError for a feature whose sizes or numbers do not fit, and for features that do not go together
 */
export function checkFeatureSizes(problem: Problem, shape: ProblemShape): void {
  const { batch, heads, queries, keys } = shape;
  const { sequences, rows, segments, blockMask } = problem;
  const whole = wholeSizes(problem, shape);
  readFeatures(problem, {
    rows: ({ queries: selected }) => {
      if (selected.length !== batch * heads * queries)
        throw new RequestError(
          `${selected.length} rows are selected, q has ${batch * heads * queries}; make them equal`,
        );
    },
    sequences: (packed) => {
      if (batch !== 1) throw new RequestError(`packed sequences have batch ${batch}; give batch 1`);
      checkSequences(packed, rows?.of ?? queries, keys);
      if (segments !== undefined || blockMask !== undefined)
        throw new RequestError(
          `packed sequences cannot be combined with ${segments === undefined ? 'a block mask' : 'segments'}: both say where keys end; leave one out`,
        );
    },
    mask: (mask) => requireBroadcast('mask', mask, whole),
    bias: (bias) => requireBroadcast('bias', bias, whole),
    alibiSlopes: (slopes) => requireShape('alibi_slopes', slopes, [[heads], [whole[0], heads]]),
    sink: ({ logits }) => requireShape('sink', logits, [[heads]]),
    segments: (ids) => {
      requireShape('q_segments', ids.queries, [[whole[2]], [batch, whole[2]]]);
      requireShape('k_segments', ids.keys, [[keys], [batch, keys]]);
    },
    prefix: (prefix) => {
      if (!Number.isSafeInteger(prefix) || prefix < 0)
        throw new RequestError(`prefix is ${prefix}; give a whole number of keys, 0 or more`);
    },
    blockMask: (blocks) => checkBlockSizes(blocks, whole),
    keyLists: (lists) => checkListSizes(lists, problem, shape),
    keyRanges: (ranges) =>
      checkKeyRanges(
        ranges,
        sequences?.map((one) => one.keys) ?? new Array<number>(batch).fill(keys),
      ),
    dropout: ({ kept, probability }) => {
      requireBroadcast('dropout_mask', kept, whole);
      if (!(probability >= 0 && probability < 1))
        throw new RequestError(`dropout_p is ${probability}; give a number from 0 to below 1`);
    },
  });
}

/**
 * Checks the elements of the features' tensors, all of them: for once in the life of a problem.
 * @throws RequestError for a mask that is false everywhere, a bias, slope or sink that is no number (−∞ is none),
 * for blocks of keys that do not exist, and for entries of lists that mean nothing
 */
export function checkFeatureElements(problem: Problem, shape: ProblemShape): void {
  const hasNone = (): void => undefined;
  readFeatures<void>(problem, {
    mask: ({ data }) => {
      if (data.length > 0 && data.every((x) => x === 0))
        throw new RequestError(
          'mask is false everywhere, so that no query sees a key; true means visible',
        );
    },
    bias: (bias) => requireFinite('bias', bias, true),
    alibiSlopes: (slopes) => requireFinite('alibi_slopes', slopes, false),
    sink: ({ logits }) => requireFinite('sink', logits, true),
    blockMask: (blocks) => checkBlockNumbers(blocks, shape.keys),
    keyLists: (lists) => checkListEntries(lists, problem, shape),
    segments: hasNone,
    prefix: hasNone,
    dropout: hasNone,
    sequences: hasNone,
    keyRanges: hasNone,
    rows: hasNone,
  });
}
