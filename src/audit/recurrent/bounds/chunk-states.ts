import type { Work } from './chunk-work.js';
import type { ChunkWrites, WriterContext } from './chunk-writes.js';
import { addProduct, setMagnitudes } from './matrices.js';
import { compose, conversion } from './roundings.js';
import type { TokenBlock } from './token-blocks.js';

/** Sets what a new state errs by in its decay and the sum with it, and by what keys err by, by element. */
export function setStateErrors(
  stateError: Float64Array,
  work: Work,
  { count: n, gateSums, gateErrorSums }: TokenBlock,
  writes: ChunkWrites,
  { roundings, inputs, shape, arithmetic }: WriterContext,
): void {
  const { matrices, keyErrors, magnitudes } = work;
  const { keyDim, valueDim } = shape;
  const { of, operation } = roundings;
  const { formats } = arithmetic;
  const sum = roundings.sum(n + 2);
  const isByKey = inputs.decay === 'by-key-dimension';
  // By head the decay is in what is written, which is rounded once more anyway.
  const again =
    isByKey || inputs.decay === 'none'
      ? conversion(formats['write-operand'], formats.write).unit
      : 0;
  const later = compose(again, sum);
  for (let i = 0; i < keyDim; i++) {
    const ofDecay = inputs.ofDecay(gateSums[(n - 1) * keyDim + i], n, gateErrorSums[n - 1]);
    const decayed = matrices.endDecay[i] * compose(ofDecay, ofDecay === 0 ? 0 : 2 * operation);
    const share = decayed + sum * (matrices.endDecay[i] + decayed);
    for (let at = i * valueDim; at < (i + 1) * valueDim; at++)
      stateError[at] = share * magnitudes[at];
    const made = isByKey ? compose(inputs.normalised, ofDecay, 2 * operation) : inputs.key;
    for (let at = i; at < n * keyDim; at += keyDim) {
      const size = Math.abs(matrices.endKeys[at]);
      const before = size * made;
      const error = before + (isByKey ? of.operand.error(size + before) : 0);
      keyErrors[at] = error + later * (size + error);
    }
  }
  const size = { rows: keyDim, inner: n, columns: valueDim };
  addProduct(stateError, keyErrors, writes.largest, size, true);
}

/** Adds what W S makes of the new state by its copy's errors: |Kᵀ W| times them. */
export function addCopyErrors(
  stateError: Float64Array,
  { matrices, through }: Work,
  reads: Float64Array,
  copyErrors: Float64Array,
  n: number,
): void {
  const dim = matrices.endDecay.length;
  through.fill(0);
  addProduct(through, matrices.endKeys, reads, { rows: dim, inner: n, columns: dim }, true);
  setMagnitudes(through, through, dim * dim);
  const columns = copyErrors.length / dim;
  addProduct(stateError, through, copyErrors, { rows: dim, inner: dim, columns });
}

/** |T| e + ε at most. */
export function largestWriteErrors(
  { matrices, spread, written }: Work,
  { before, errors }: ChunkWrites,
  { rows, columns }: { readonly rows: number; readonly columns: number },
): Float64Array {
  written.set(errors);
  if (before === null) return written;
  setMagnitudes(spread, matrices.inverse, rows * rows);
  addProduct(written, spread, before, { rows, inner: rows, columns });
  return written;
}

/** Raises the errors of what is written by those of N e^(G_C − G), where decays are by head. */
export function addDecayedWrites(
  writes: ChunkWrites,
  { count: n, gateSums, gateErrorSums, decay }: TokenBlock,
  { roundings, inputs, shape }: WriterContext,
): void {
  if (inputs.decay === 'none' || inputs.decay === 'by-key-dimension') return;
  const { keyDim, valueDim } = shape;
  const { of, operation } = roundings;
  const { unit, error } = of['write-operand'];
  const made = compose(
    inputs.ofDecay(gateSums[(n - 1) * keyDim], n, gateErrorSums[n - 1]),
    2 * operation,
  );
  let toEnd = 1;
  for (let t = n - 1; t >= 0; t--) {
    for (let at = t * valueDim; at < (t + 1) * valueDim; at++) {
      const size = writes.largest[at] * (1 + made);
      // What underflows is counted apart; a decay of 0 leaves nothing to round.
      const rounded = toEnd > 0 ? Math.min(unit * size, error(size * toEnd) / toEnd) : 0;
      writes.errors[at] += made * writes.largest[at] + rounded;
    }
    toEnd *= decay[t * keyDim];
  }
}

/** S ← e^(G_C) S + Σ_j (k_j e^(G_C − G_j)) N_jᵀ. */
export function advance(
  state: Float64Array,
  { matrices }: Work,
  n: number,
  writes: Float64Array,
): void {
  const keyDim = matrices.endDecay.length;
  const columns = state.length / keyDim;
  for (let i = 0; i < state.length; i++) state[i] *= matrices.endDecay[Math.floor(i / columns)];
  addProduct(state, matrices.endKeys, writes, { rows: keyDim, inner: n, columns }, true);
}

/**
 * Rounds a new state into its format: raises its errors by that, by element. `others` is what its elements err by besides; where only norms of columns bound
 * that, null: their share of the rounding is left out.
 */
export function addStateRounding(
  stateError: Float64Array,
  others: Float64Array | null,
  state: Float64Array,
  { roundings }: WriterContext,
): void {
  const { unit, least, largest, error } = roundings.of.state;
  for (let i = 0; i < state.length; i++) {
    const size = Math.abs(state[i]) + stateError[i] + (others ? others[i] : 0);
    const rounded = others ? error(size) : unit * size + least;
    stateError[i] += size < Math.min(largest, 2 ** 126) ? rounded : Infinity;
  }
}
