import type { WriterContext } from './chunk-writes.js';
import { compose } from './roundings.js';
import type { TokenBlock } from './token-blocks.js';

/** What a token's operations err by, by key dimension. */
export interface TokenErrors {
  /** d. */
  readonly decay: Float64Array;
  /** Of the decayed state: the decay's error and the product's, as a share. */
  readonly decayed: Float64Array;
  /** k and q, what terms of Sᵀk, k wᵀ and Sᵀq err by: their magnitudes times a share. */
  readonly key: Float64Array;
  readonly read: Float64Array;
  readonly written: Float64Array;
  readonly query: Float64Array;
  readonly output: Float64Array;
}

export const tokenErrors = (keyDim: number): TokenErrors => {
  const row = () => new Float64Array(keyDim);
  return {
    decay: row(),
    decayed: row(),
    key: row(),
    read: row(),
    written: row(),
    query: row(),
    output: row(),
  };
};

/** Sets a token's errors. */
export function setTokenErrors(
  to: TokenErrors,
  { k, q, decay, gates, gateErrors }: TokenBlock,
  t: number,
  { roundings, inputs, shape }: WriterContext,
): void {
  const { keyDim } = shape;
  const { operation, of } = roundings;
  const sum = roundings.sum(keyDim);
  const read = compose(inputs.normalised, sum, 3 * operation);
  const written = compose(inputs.normalised, operation);
  const output = compose(inputs.normalised, sum, 3 * operation, of['state-operand'].unit);
  for (let i = 0; i < keyDim; i++) {
    const at = t * keyDim + i;
    const ofDecay = inputs.ofDecay(gates[at], 1, gateErrors[t]);
    to.decay[i] = decay[at];
    to.decayed[i] = ofDecay === 0 ? 0 : ofDecay + operation + ofDecay * operation;
    to.key[i] = k[at];
    to.read[i] = Math.abs(k[at]) * (read + to.decayed[i] + read * to.decayed[i]);
    to.written[i] = Math.abs(k[at]) * written;
    to.query[i] = q[at];
    to.output[i] = Math.abs(q[at]) * output;
  }
}

/** Sums of a token over the key dimension, by column. */
export interface TokenSums {
  /** What the decayed state holds at the key, and what that errs by. */
  readonly read: Float64Array;
  readonly readErrors: Float64Array;
  /** w, and |ŵ| at most. */
  readonly written: Float64Array;
  readonly largest: Float64Array;
  /** What the new state is rounded by, squared; its own squares. */
  readonly squares: Float64Array;
  readonly sizes: Float64Array;
  /** What the output errs by but for the state's error. */
  readonly out: Float64Array;
}

export const tokenSums = (valueDim: number): TokenSums => {
  const row = () => new Float64Array(valueDim);
  return {
    read: row(),
    readErrors: row(),
    written: row(),
    largest: row(),
    squares: row(),
    sizes: row(),
    out: row(),
  };
};

/** Decays the state, and reads it at the key. */
export function decayAndRead(state: Float64Array, errors: TokenErrors, sums: TokenSums): void {
  const { decay, key, read: shares } = errors;
  const { read, readErrors } = sums;
  const columns = read.length;
  read.fill(0);
  readErrors.fill(0);
  for (let i = 0; i < key.length; i++) {
    const [d, k, share] = [decay[i], key[i], shares[i]];
    const row = i * columns;
    for (let c = 0; c < columns; c++) {
      const decayed = d * state[row + c];
      state[row + c] = decayed;
      read[c] += k * decayed;
      readErrors[c] += share * Math.abs(decayed);
    }
  }
}

/** Writes beside the key, and sums what rounding does to the new state and to the output. `stored`: of each new element, as a share. */
export function writeAndRead(
  state: Float64Array,
  errors: TokenErrors,
  sums: TokenSums,
  stored: number,
): void {
  const { decayed, key, written: shares, output } = errors;
  const { written, largest, squares, sizes, out } = sums;
  const columns = written.length;
  squares.fill(0);
  sizes.fill(0);
  out.fill(0);
  for (let i = 0; i < key.length; i++) {
    const [k, ofDecay, ofKey, ofOutput] = [key[i], decayed[i], shares[i], output[i]];
    const row = i * columns;
    for (let c = 0; c < columns; c++) {
      const before = state[row + c];
      const next = before + k * written[c];
      state[row + c] = next;
      const size = Math.abs(next);
      const error = ofDecay * Math.abs(before) + ofKey * largest[c] + stored * size;
      squares[c] += error * error;
      sizes[c] += size * size;
      out[c] += ofOutput * size;
    }
  }
}

/** The same of an additive write, whose state errs by `stateErrors` by element; they are moved past the token, and added to the output's. */
export function writeAndReadByElement(
  state: Float64Array,
  stateErrors: Float64Array,
  errors: TokenErrors,
  sums: TokenSums,
  stored: number,
): void {
  const { decay, decayed, key, written: shares, output, query } = errors;
  const { written, largest, sizes, out } = sums;
  const columns = written.length;
  sizes.fill(0);
  out.fill(0);
  for (let i = 0; i < key.length; i++) {
    const [d, k, ofDecay, ofKey, ofOutput] = [decay[i], key[i], decayed[i], shares[i], output[i]];
    const [q, size] = [Math.abs(query[i]), Math.abs(k)];
    const row = i * columns;
    for (let c = 0; c < columns; c++) {
      const at = row + c;
      const before = d * state[at];
      const next = before + k * written[c];
      const kept = d * stateErrors[at];
      const ofWrite = ofKey * largest[c] + size * (largest[c] - Math.abs(written[c]));
      const error = kept + ofDecay * (Math.abs(before) + kept) + ofWrite;
      const whole = error + stored * (Math.abs(next) + error);
      state[at] = next;
      stateErrors[at] = whole;
      const most = Math.abs(next) + whole;
      sizes[c] += most * most;
      out[c] += ofOutput * most + q * whole;
    }
  }
}
