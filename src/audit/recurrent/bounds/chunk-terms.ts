import { compose, type Conversion, type Roundings } from './roundings.js';
import type { InputErrors } from './input-errors.js';
import type { TermErrors } from './block-matrices.js';
import type { TokenBlock } from './token-blocks.js';

/** What a tensor core reads a number of fp32 to, as tf32, which it truncates it to. */
const tensorCoreUnit = 2 ** -10;

/** What the operands of a chunk that are made from keys and queries err by, by element. */
export interface OperandErrors extends TermErrors {
  /** The relative error of e^G, by key dimension. */
  readonly decays: Float64Array;
}

/** The relative errors of the terms of A and P beside that of their decay. */
export interface PairErrors {
  readonly triangle: number;
  readonly intra: number;
  /** What multiplies β k before it is rounded, if it is. */
  readonly made: Conversion | null;
  readonly normalised: number;
}

/**
 * The relative errors of a term of A and of P. By key dimension its factors hold a decay each, in fp32, which tensor cores may read as tf32;
 * else decays multiply the sum, of the keys, or of β k in the format of operands, and the keys.
 */
export function pairErrors(
  errors: InputErrors,
  { of, sum, operation }: Roundings,
  keyDim: number,
): PairErrors {
  const isByKey = errors.decay === 'by-key-dimension';
  const read = compose(errors.normalised, Math.min(of.operand.unit, tensorCoreUnit));
  const [query, key] = isByKey ? [read, read] : [errors.query, errors.key];
  const rest = compose(sum(keyDim), 4 * operation);
  return {
    triangle: compose(key, isByKey ? read : 0, rest),
    intra: compose(query, key, rest),
    made: isByKey ? null : of.operand,
    normalised: errors.normalised,
  };
}

/** Sets decays' errors and what A's and P's terms err by for a block. */
export function setTermErrors(
  to: OperandErrors,
  block: TokenBlock,
  pair: PairErrors,
  ofDecay: InputErrors['ofDecay'],
  dim: number,
): void {
  const { count, q, k, beta, gateSums, gateErrorSums, strengthErrors } = block;
  for (let t = 0; t < count; t++) {
    let [sum, error] = [NaN, 0];
    for (let i = 0; i < dim; i++) {
      const at = t * dim + i;
      if (gateSums[at] !== sum) {
        sum = gateSums[at];
        error = ofDecay(sum, t + 1, gateErrorSums[t]);
      }
      const key = Math.abs(beta[t] * k[at]);
      const share = pair.triangle + error + pair.triangle * error;
      // β's error is the same in all terms of a row too.
      const before = key * ((pair.made ? pair.normalised : 0) + strengthErrors[t]);
      const shared = before + (pair.made ? pair.made.error(key + before) : 0);
      to.decays[at] = error;
      to.shared[at] = shared;
      to.triangle[at] = (key + shared) * share;
      to.intra[at] = Math.abs(q[at]) * (pair.intra + error + pair.intra * error);
    }
  }
}
