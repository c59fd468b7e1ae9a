import { compose, type Roundings } from './roundings.js';
import type { InputErrors } from './input-errors.js';
import type { TermErrors } from './block-matrices.js';
import type { TokenBlock } from './token-blocks.js';

/** What the operands of a chunk that are made from keys and queries err by, by element. */
export interface OperandErrors extends TermErrors {
  /** The relative error of e^G, by key dimension. */
  readonly decays: Float64Array;
}

/** The relative errors of the operands of A and P beside that of their decay. */
export interface PairErrors {
  readonly triangle: number;
  readonly intra: number;
}

/**
 * The relative errors of a term of A and of P: where decays are by key dimension both of its factors are operands that hold one; else only β k
 * is made, and decays multiply the sum.
 */
export function pairErrors(
  errors: InputErrors,
  { of, sum, operation }: Roundings,
  keyDim: number,
): PairErrors {
  const made = compose(errors.normalised, of.operand.unit);
  const isMade = errors.decay === 'by-key-dimension';
  const [query, key] = isMade ? [made, made] : [errors.query, errors.key];
  const rest = compose(sum(keyDim), 4 * operation);
  return { triangle: compose(made, key, rest), intra: compose(query, key, rest) };
}

/** Sets decays' errors and the weights of A's and P's terms for a block. */
export function setTermErrors(
  to: OperandErrors,
  block: TokenBlock,
  pair: PairErrors,
  ofDecay: InputErrors['ofDecay'],
  dim: number,
): void {
  const { count, q, k, beta, gateSums } = block;
  for (let t = 0; t < count; t++) {
    let [sum, error] = [NaN, 0];
    for (let i = 0; i < dim; i++) {
      const at = t * dim + i;
      if (gateSums[at] !== sum) {
        sum = gateSums[at];
        error = ofDecay(sum, t + 1);
      }
      to.decays[at] = error;
      to.triangle[at] = Math.abs(beta[t] * k[at]) * (pair.triangle + error + pair.triangle * error);
      to.intra[at] = Math.abs(q[at]) * (pair.intra + error + pair.intra * error);
    }
  }
}
