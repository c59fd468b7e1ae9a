import type { RecurrentShape } from '../../src/problem/index.js';

/** Gradients of neighbouring tokens for a value head, a row each; those of q and k are of the normalised ones. */
export interface GradientRows {
  readonly dq: Float64Array;
  readonly dk: Float64Array;
  readonly dv: Float64Array;
  /** As many elements a row as there are gates. */
  readonly dg: Float64Array;
  readonly dbeta: Float64Array;
}

/** Rows of up to `tokens` tokens. */
export function gradientRows(
  tokens: number,
  { keyDim, valueDim }: Pick<RecurrentShape, 'keyDim' | 'valueDim'>,
  gateCount: number,
): GradientRows {
  return {
    dq: new Float64Array(tokens * keyDim),
    dk: new Float64Array(tokens * keyDim),
    dv: new Float64Array(tokens * valueDim),
    dg: new Float64Array(tokens * gateCount),
    dbeta: new Float64Array(tokens),
  };
}

/** Receives the gradients of `count` tokens from `first` on, counted over [batch, tokens]; good until the next. */
export type GradientReceiver = (first: number, count: number, rows: GradientRows) => void;

/** dO of tokens of a head, good until the next call. */
export type OutputGradientReader = (first: number, count: number, head: number) => Float64Array;

/**
 * Goes back through a sequence of a value head, from the states before its stretches. `stateGradient` is that of the final state before, and that
 * of the initial state afterwards.
 */
export type BackwardPass = (
  sequence: number,
  head: number,
  starts: readonly Float64Array[],
  stateGradient: Float64Array,
  receive: GradientReceiver,
) => void;
