import type { ScaleName, Tensor } from '../formats/index.js';
import type { Sequence } from './features.js';
import type { Problem } from './problem.js';
import { problemShape } from './shape.js';

/** The tensors that may have scales. */
export const scaledTensors = ['q', 'k', 'v'] as const;
/** One of {@link scaledTensors}. */
export type ScaledTensor = (typeof scaledTensors)[number];

/** The kinds of factors, in the order of multiplication. */
export const scaleNames = [
  'block_scale',
  'global_scale',
  'descale',
] as const satisfies readonly ScaleName[];

/** The name of a tensor of factors in files. */
export function scaleTensorName(tensor: ScaledTensor, kind: ScaleName): string {
  return `${tensor}_${kind}`;
}

/** The sizes of a tensor, a batch of one included. */
export type Sizes = readonly [batch: number, heads: number, rows: number, dim: number];

/** The last four sizes of a shape, a batch of one where there are three. */
export function rank4({ shape }: Pick<Tensor, 'shape'>): Sizes {
  return [1, ...shape].slice(-4) as unknown as Sizes;
}

/**
 * Number of elements out of `size` that share one of `count` factors: all, or the power of two that makes that many
 * blocks, the last one shorter; null if none does.
 */
export function binaryBlock(size: number, count: number): number | null {
  if (count === size) return 1;
  if (count === 1) return Math.max(1, size);
  for (let block = 2; block < size; block *= 2) if (Math.ceil(size / block) === count) return block;
  return null;
}

/** Facts about the tensor to scale. */
export interface ScaleTarget {
  /** "q_descale", for messages. */
  readonly label: string;
  readonly sizes: Sizes;
  readonly kvHeads: number;
  readonly sequences: readonly Sequence[] | undefined;
  /** The first row of each sequence, and its number of rows. */
  readonly rowsOf: (sequence: Sequence) => readonly [first: number, rows: number];
}

/** The tensor that factors of one of a problem's tensors apply to. */
export function scaleTarget(problem: Problem, name: ScaledTensor, kind: ScaleName): ScaleTarget {
  const shape = problemShape(problem);
  const isQuery = name === 'q';
  return {
    label: scaleTensorName(name, kind),
    sizes: [
      shape.batch,
      isQuery ? shape.heads : shape.kvHeads,
      isQuery ? shape.queries : shape.keys,
      name === 'v' ? shape.vDim : shape.qkDim,
    ],
    kvHeads: shape.kvHeads,
    sequences: problem.sequences,
    rowsOf: (sequence) =>
      isQuery ? [sequence.firstQuery, sequence.queries] : [sequence.firstKey, sequence.keys],
  };
}
