import { setColumnNorms } from './matrices.js';
import { setSpreads } from './state-bounds.js';
import type { TokenBlock } from './token-blocks.js';

/** A matrix of [n, value dimension], and how β k of each token is rounded. */
export interface SharedRounding {
  readonly block: TokenBlock;
  /** [n, key dimension]. */
  readonly shared: Float64Array;
  /** N. */
  readonly writes: Float64Array;
  /** What the state before the block errs by, [key dimension, value dimension]. */
  readonly stateErrors: Float64Array;
}

/**
 * A function that adds |δ(β k_i)|ᵀ |Ĥ_i| to row i of `errors`: a rounding of β k_i is the same in all terms of a row of A, so that what it makes of A N̂ is its
 * product with Ĥ_i = Σ_(j<i) e^(G_i − G_j) k_j N̂_jᵀ, what the block has written before. N̂ is that of a state that errs by δ: Ĥ_i is the state then,
 * of which D_i δ comes from before the block, so that it errs by Φ_i δ − D_i δ.
 */
export function sharedRoundings(
  most: number,
  keyDim: number,
  valueDim: number,
): (errors: Float64Array, given: SharedRounding) => void {
  const written = new Float64Array(keyDim * valueDim);
  const fromStart = new Float64Array(keyDim);
  const spreads = new Float64Array(most);
  const norms = new Float64Array(valueDim);
  return (errors, { block, shared, writes, stateErrors }) => {
    const { count, k, decay } = block;
    setSpreads(spreads, block, keyDim);
    setColumnNorms(norms, stateErrors);
    written.fill(0);
    fromStart.fill(1);
    let spread = 1;
    for (let t = 0; t < count; t++) {
      const row = t * valueDim;
      let [squares, largest] = [0, 0];
      for (let i = 0; i < keyDim; i++) {
        const at = i * valueDim;
        const [d, key, error] = [decay[t * keyDim + i], k[t * keyDim + i], shared[t * keyDim + i]];
        fromStart[i] *= d;
        squares += error * error;
        largest = Math.max(largest, d);
        for (let c = 0; c < valueDim; c++) {
          const before = d * written[at + c];
          errors[row + c] += error * (Math.abs(before) + fromStart[i] * stateErrors[at + c]);
          written[at + c] = before + key * writes[row + c];
        }
      }
      const factor = Math.sqrt(squares) * spread * largest;
      for (let c = 0; c < valueDim; c++) errors[row + c] += factor * norms[c];
      spread *= spreads[t];
    }
  };
}
