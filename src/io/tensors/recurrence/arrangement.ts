import type { Tensor } from '../../../formats/index.js';
import type { RecurrentFamily } from '../../../problem/index.js';
import { elementBytes, elementsOver } from '../element-storage.js';
import { toHeadsFirst } from '../problem/canonical.js';

/** The lie of a recurrence's tensors in its files. */
export interface RecurrentArrangement {
  /** Whether heads come before tokens. */
  readonly headsFirst: boolean;
  /** Whether tensors of tokens have an axis of batches; those without are of one. */
  readonly hasBatch: boolean;
  /** Whether a state is [value dimension, key dimension]. */
  readonly valueFirst: boolean;
}

/** What a tensor has a row for. */
export type RecurrentRows = 'tokens' | 'states' | 'heads';

/** A tensor of tokens as [batch, tokens, heads, …], copied where heads come first. */
function tokensFirst(tensor: Tensor, { headsFirst, hasBatch }: RecurrentArrangement): Tensor {
  const shape = hasBatch ? tensor.shape : [1, ...tensor.shape];
  if (!headsFirst || shape.length < 3) return { ...tensor, shape };
  const [batch, heads, tokens, ...rest] = shape;
  const width = rest.reduce((product, size) => product * size, 1);
  // Exchanging the axes is its own inverse.
  const { data } = toHeadsFirst({ ...tensor, shape: [batch, heads, tokens, width] });
  return { ...tensor, shape: [batch, tokens, heads, ...rest], data };
}

/** States with their last two axes exchanged, copied. */
function transposed({ format, shape, data }: Tensor): Tensor {
  const [rows, columns] = shape.slice(-2);
  const size = elementBytes(format);
  const source = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  const target = new Uint8Array(data.byteLength);
  const ofState = rows * columns;
  const elements = data.byteLength / size;
  for (let at = 0; at < elements; at++) {
    const within = at % ofState;
    const to = at - within + (within % columns) * rows + Math.floor(within / columns);
    target.set(source.subarray(at * size, (at + 1) * size), to * size);
  }
  return {
    format,
    shape: [...shape.slice(0, -2), columns, rows],
    data: elementsOver(format, target.buffer),
  };
}

/**
 * A tensor as problems of linear attention have it: [batch, tokens, heads, …], [sequences, heads, key dimension, value
 * dimension], or [heads, …].
 */
export function arrangeRecurrent(
  tensor: Tensor,
  of: RecurrentRows,
  arrangement: RecurrentArrangement,
): Tensor {
  if (of === 'heads') return tensor;
  if (of === 'tokens') return tokensFirst(tensor, arrangement);
  const shape = tensor.shape.length === 3 ? [1, ...tensor.shape] : tensor.shape;
  const states = { ...tensor, shape };
  return arrangement.valueFirst && shape.length === 4 ? transposed(states) : states;
}

/**
 * A tensor of a problem as files of its family have it, or one of such a file as problems have it: states of mamba2 are value first in
 * files, [sequences, heads, value dimension, key dimension]; all else is the same.
 */
export function asFamilyStores(tensor: Tensor, of: RecurrentRows, family: RecurrentFamily): Tensor {
  return of === 'states' && family === 'mamba2' ? transposed(tensor) : tensor;
}

/** The shape of a tensor of a problem as files of its family have it. */
export function familyShape(
  shape: readonly number[],
  of: RecurrentRows,
  family: RecurrentFamily,
): readonly number[] {
  return of === 'states' && family === 'mamba2' ? [0, 1, 3, 2].map((axis) => shape[axis]) : shape;
}
