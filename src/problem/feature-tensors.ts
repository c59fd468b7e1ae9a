import { formats, patternsOf, storageOf } from '../formats/index.js';
import { readFeatures } from './each-feature.js';
import type { Problem } from './problem.js';
import type { StoredTensor, StoredTensors } from './stored.js';

/**
 * The tensors of a problem's features unchanged, by their names in a problem file; those of sequences
 * are written by `storeProblem`.
 */
export function featureTensors(problem: Problem): StoredTensors {
  const none = (): StoredTensors => ({});
  const tensors = readFeatures<StoredTensors>(problem, {
    mask: (mask) => ({ mask }),
    bias: (bias) => ({ bias }),
    alibiSlopes: (slopes) => ({ alibi_slopes: slopes }),
    sink: ({ logits }) => ({ sink: logits }),
    segments: ({ queries, keys }) => ({ q_segments: queries, k_segments: keys }),
    prefix: none,
    blockMask: ({ counts, indices }) => ({ kv_num_blocks: counts, kv_indices: indices }),
    keyLists: ({ indices, blockKeys }) => ({
      [blockKeys === 1 ? 'kv_index' : 'block_index']: indices,
    }),
    dropout: ({ kept }) => ({ dropout_mask: kept }),
    sequences: none,
    keyRanges: none,
    rows: none,
  });
  return Object.assign({}, ...tensors) as StoredTensors;
}

/** The numbers of a problem's features that are in none of its tensors, by their names in a problem file. */
export interface FeatureSettings {
  readonly prefix?: number;
  readonly block_q?: number;
  readonly block_k?: number;
  readonly block_size?: number;
  readonly dropout_p?: number;
  readonly lse_sink?: boolean;
}

/** The settings of a problem's features; features that it lacks have none. */
export function featureSettings(problem: Problem): FeatureSettings {
  const none = (): FeatureSettings => ({});
  const settings = readFeatures<FeatureSettings>(problem, {
    mask: none,
    bias: none,
    alibiSlopes: none,
    segments: none,
    prefix: (prefix) => ({ prefix }),
    blockMask: ({ blockQueries, blockKeys }) => ({ block_q: blockQueries, block_k: blockKeys }),
    keyLists: ({ blockKeys, blockQueries }) => ({
      ...(blockKeys === 1 ? {} : { block_size: blockKeys }),
      ...(blockQueries === 1 ? {} : { block_q: blockQueries }),
    }),
    dropout: ({ probability }) => ({ dropout_p: probability }),
    sink: ({ inLse }) => ({ lse_sink: inLse }),
    sequences: none,
    keyRanges: none,
    rows: none,
  });
  return Object.assign({}, ...settings) as FeatureSettings;
}

/** The names of tensors that broadcast to [batch, heads, queries, keys]. */
export const scoreTensors: readonly string[] = ['mask', 'bias', 'dropout_mask'];

/** The used part of a tensor over [batch, heads, queries, keys]. */
export interface ScoreArea {
  readonly queries: number;
  readonly keys: number;
  /** Number of unused keys at the front of each sequence; null for none. */
  readonly left: readonly number[] | null;
}

type Patterns = Uint8Array | Uint16Array | Uint32Array | Int32Array;

/** The bit patterns of a tensor's elements, each of `words` words. */
function patterns(tensor: StoredTensor): { readonly data: Patterns; readonly words: number } {
  if (!('format' in tensor)) return { data: tensor.data, words: 1 };
  const format = formats[tensor.format];
  return { data: patternsOf(tensor.data, format), words: format.storageBits === 64 ? 2 : 1 };
}

function ofPatterns<T extends StoredTensor>(tensor: T, shape: readonly number[], data: Patterns) {
  if (!('format' in tensor)) return { ...tensor, shape, data };
  const { format } = tensor;
  return { ...tensor, shape, data: storageOf(formats[format], data as Uint8Array) };
}

/** A copy of elements from one area of keys to another. */
interface Move {
  readonly to: readonly [queries: number, keys: number];
  readonly left: readonly number[] | null;
  /** 1: from the used keys to all slots; −1: from all slots to the used keys. */
  readonly direction: 1 | -1;
  /** Value of the other elements, as words of a bit pattern. */
  readonly filler: ArrayLike<number>;
}

function move<T extends StoredTensor>(tensor: T, { to, left, direction, filler }: Move): T {
  const [batch, heads, queries, keys] = [1, 1, 1, 1, ...tensor.shape].slice(-4);
  // A tensor of rank below 4 gets the leading sizes of 1 that stand for none.
  const target = [
    left !== null && keys !== 1 ? left.length : batch,
    heads,
    queries === 1 ? 1 : to[0],
    keys === 1 ? 1 : to[1],
  ];
  const { data: source, words } = patterns(tensor);
  const Words = source.constructor as new (length: number) => Patterns;
  const data = new Words(target.reduce((product, size) => product * size, words));
  for (let i = 0; i < data.length; i++) data[i] = filler[i % words];
  const rows = Math.min(queries, target[2]);
  for (let b = 0; b < target[0]; b++) {
    const skipped = keys === 1 ? 0 : (left?.[b] ?? 0);
    const [from, at] = direction === 1 ? [0, skipped] : [skipped, 0];
    const count = Math.max(0, Math.min(keys - from, target[3] - at)) * words;
    for (let h = 0; h < heads; h++)
      for (let i = 0; i < rows; i++) {
        const row = (((batch === 1 ? 0 : b) * heads + h) * queries + i) * keys + from;
        const place = ((b * heads + h) * target[2] + i) * target[3] + at;
        data.set(source.subarray(row * words, row * words + count), place * words);
      }
  }
  return ofPatterns(tensor, target, data) as T;
}

/** The used area of a broadcastable tensor over all slots, as [batch, heads, queries, keys]. */
export function cropToArea<T extends StoredTensor>(tensor: T, area: ScoreArea): T {
  const { queries, keys, left } = area;
  return move(tensor, { to: [queries, keys], left, direction: -1, filler: [0, 0] });
}

/**
 * A broadcastable tensor over the used keys, spread to all slots.
 * @param all the numbers of slots of queries and keys
 * @param filler the value of unused slots, as words of a bit pattern
 */
export function spreadToSlots<T extends StoredTensor>(
  tensor: T,
  all: ScoreArea,
  filler: ArrayLike<number>,
): T {
  const { queries, keys, left } = all;
  return move(tensor, { to: [queries, keys], left, direction: 1, filler });
}
