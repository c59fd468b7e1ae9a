/** A matrix of exact values, and what a kernel's err by at most. */
export interface Errored {
  readonly value: Float64Array;
  readonly error: Float64Array;
}

export const errored = (size: number): Errored => ({
  value: new Float64Array(size),
  error: new Float64Array(size),
});

/** The same where shares may be stored before they are added: what that errs by. */
export interface Shared extends Errored {
  readonly stored: Float64Array;
}

/** The gradients of a block's tokens, a row each, by the names of their tensors: with respect to what the recurrence takes, for one value head. */
export interface BlockGradients {
  readonly dq: Shared;
  readonly dk: Shared;
  readonly dv: Errored;
  readonly dbeta: Errored;
  /** By key dimension, of any family. */
  readonly dg: Errored;
}

/** Gradients of blocks of up to `most` tokens. */
export const blockGradients = (
  most: number,
  { keyDim, valueDim }: { readonly keyDim: number; readonly valueDim: number },
): BlockGradients => ({
  dq: { ...errored(most * keyDim), stored: new Float64Array(most * keyDim) },
  dk: { ...errored(most * keyDim), stored: new Float64Array(most * keyDim) },
  dv: errored(most * valueDim),
  dbeta: errored(most),
  dg: errored(most * keyDim),
});

/** The gradient of a state, and what its columns err by in the norm. */
export interface StateGradient {
  /** [key dimension, value dimension]. */
  readonly exact: Float64Array;
  readonly norms: Float64Array;
}

/**
 * Raises dg's errors to those of a kernel that sums q dq − k dk from each token to the end. `carry` is what the rows behind the block err by, by key
 * dimension; the block's are added. `addition` is the relative error of the sum.
 */
export function coverSummedGates(
  { dq, dk, dg }: BlockGradients,
  { q, k, count }: { readonly q: Float64Array; readonly k: Float64Array; readonly count: number },
  carry: Float64Array,
  addition: number,
): void {
  const dim = carry.length;
  for (let t = count - 1; t >= 0; t--)
    for (let i = 0; i < dim; i++) {
      const at = t * dim + i;
      const [a, b] = [Math.abs(q[at]), Math.abs(k[at])];
      const errors = a * dq.error[at] + b * dk.error[at];
      const terms = a * Math.abs(dq.value[at]) + b * Math.abs(dk.value[at]);
      carry[i] += errors + addition * (terms + errors);
      dg.error[at] = Math.max(dg.error[at], carry[i]);
    }
}
