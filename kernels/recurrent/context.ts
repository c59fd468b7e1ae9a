import type { RecurrentProblem, RecurrentShape } from '../../src/problem/index.js';
import type { RecurrentArithmetic, RecurrentRounding } from './arithmetic.js';
import type { GradientChange } from './chunk-gradients.js';
import type { ChunkChange } from './chunk-parts.js';
import type { Products } from './matrix/matrices.js';

/** What a token does to a state: it decays it, reads it at the key, writes beside the key, and reads it at the query. */
export type TokenOperation = 'decay' | 'read' | 'write' | 'output';

/** The order of the law. */
export const lawfulOrder: readonly TokenOperation[] = ['decay', 'read', 'write', 'output'];

/** What the passes over a problem share. */
export interface RunContext {
  readonly problem: RecurrentProblem;
  readonly shape: RecurrentShape;
  readonly arithmetic: RecurrentArithmetic;
  readonly rounding: RecurrentRounding;
  readonly products: Products;
  readonly scale: number;
  readonly isDelta: boolean;
  readonly gateCount: number;
  /** Of a token of the recurrent form. */
  readonly order: readonly TokenOperation[];
  /** What a fault does to a chunk at each of its stages. */
  readonly change?: ChunkChange | undefined;
  readonly changeGradients?: GradientChange | undefined;
}

/** A stretch of a sequence's tokens. */
export interface Stretch {
  readonly first: number;
  readonly count: number;
}

/** The stretches of at most `most` tokens that a sequence falls into. */
export function stretchesOf(
  { first, end }: { readonly first: number; readonly end: number },
  most: number,
): readonly Stretch[] {
  const count = Math.ceil((end - first) / most);
  return Array.from({ length: count }, (_, i) => {
    const at = first + i * most;
    return { first: at, count: Math.min(most, end - at) };
  });
}
