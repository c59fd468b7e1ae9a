import type { TokenBlock } from './token-blocks.js';

/** A matrix of [n, value dimension], and how β k of each token is rounded. */
export interface SharedRounding {
  readonly block: TokenBlock;
  /** [n, key dimension]. */
  readonly shared: Float64Array;
  /** N. */
  readonly writes: Float64Array;
}

/**
 * A function that adds |δ(β k_i)|ᵀ |H_i| to row i of `errors`: a rounding of β k_i is the same in all terms of a row of A, so that what it makes of A N is its
 * product with H_i = Σ_(j<i) e^(G_i − G_j) k_j N_jᵀ, what the block has written before.
 */
export function sharedRoundings(
  keyDim: number,
  valueDim: number,
): (errors: Float64Array, given: SharedRounding) => void {
  const written = new Float64Array(keyDim * valueDim);
  return (errors, { block, shared, writes }) => {
    const { count, k, decay } = block;
    written.fill(0);
    for (let t = 0; t < count; t++) {
      const row = t * valueDim;
      for (let i = 0; i < keyDim; i++) {
        const at = i * valueDim;
        const [d, key, error] = [decay[t * keyDim + i], k[t * keyDim + i], shared[t * keyDim + i]];
        for (let c = 0; c < valueDim; c++) {
          const before = d * written[at + c];
          errors[row + c] += error * Math.abs(before);
          written[at + c] = before + key * writes[row + c];
        }
      }
    }
  };
}
