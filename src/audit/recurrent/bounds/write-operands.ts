import type { BlockMatrices } from './block-matrices.js';
import type { ReadState } from './chunk-writes.js';
import type { InverseErrors } from './inverse-error.js';
import { addProduct, setMagnitudes } from './matrices.js';
import type { Conversion } from './roundings.js';
import type { TokenBlock } from './token-blocks.js';

/** Working memory of a writer; rows are tokens. */
export function writerWork(most: number, keyDim: number, valueDim: number) {
  const ofKeys = () => new Float64Array(most * keyDim);
  const ofValues = () => new Float64Array(most * valueDim);
  return {
    /** |β k e^G|, later |Ŵ| at most, and errors of the operand's terms. */
    keys: ofKeys(),
    keyErrors: ofKeys(),
    /** W, and what it is rounded by. */
    reads: ofKeys(),
    readErrors: ofKeys(),
    /** |β v| and its errors; U, at most, and what it is rounded by. */
    values: ofValues(),
    valueErrors: ofValues(),
    fresh: ofValues(),
    freshErrors: ofValues(),
    /** R = β v − (β k e^G) S, |R̂| at most, and what the inverse's error adds to N at most. */
    residual: ofValues(),
    raised: ofValues(),
    moved: ofValues(),
    /** What A's and the substitution's errors make of N before T multiplies it. */
    inner: ofValues(),
    product: ofValues(),
    exact: ofValues(),
    errors: ofValues(),
    largest: ofValues(),
    square: new Float64Array(most * most),
    startKeys: ofKeys(),
    scratch: new Float64Array(most * Math.max(keyDim, valueDim)),
    norms: new Float64Array(most),
    moreNorms: new Float64Array(most),
    /** |W|, and it times what the state errs by. */
    readSizes: ofKeys(),
    fromState: ofValues(),
  };
}

/** The memory of {@link writerWork}. */
export type WriterWork = ReturnType<typeof writerWork>;

/** What operands err by: how they are made, and their rounding. */
export function setOperandErrors(
  errors: Float64Array,
  magnitudes: Float64Array,
  size: number,
  made: (at: number) => number,
  operand: Conversion,
): void {
  for (let i = 0; i < size; i++) {
    const before = magnitudes[i] * made(i);
    errors[i] = before + operand.error(magnitudes[i] + before);
  }
}

/** Sets what depends on inputs alone: β v, β k e^G, their errors, R and W. */
export function setOperands(
  work: WriterWork,
  block: TokenBlock,
  matrices: BlockMatrices,
  state: ReadState,
  { keyDim, valueDim }: { readonly keyDim: number; readonly valueDim: number },
): void {
  const { count: n, v, beta } = block;
  const { keys, values, residual, raised, reads, fromState, exact } = work;
  setMagnitudes(keys, matrices.startKeys, n * keyDim);
  const ofState = { rows: n, inner: keyDim, columns: valueDim };
  residual.fill(0);
  addProduct(residual, matrices.startKeys, state.exact, ofState);
  raised.fill(0);
  addProduct(raised, keys, state.errors, ofState);
  for (let at = 0; at < n * valueDim; at++) {
    const value = beta[Math.floor(at / valueDim)] * v[at];
    residual[at] = value - residual[at];
    raised[at] += Math.abs(residual[at]);
    values[at] = Math.abs(value);
  }
  reads.fill(0);
  addProduct(reads, matrices.inverse, matrices.startKeys, { rows: n, inner: n, columns: keyDim });
  setMagnitudes(work.readSizes, reads, n * keyDim);
  fromState.fill(0);
  addProduct(fromState, work.readSizes, state.errors, ofState);
  exact.fill(0);
  addProduct(exact, matrices.inverse, residual, { rows: n, inner: n, columns: valueDim });
}

/** Sets the rounding of U and W, and their sizes at most. */
export function setFactors(
  work: WriterWork,
  { count: n, v, beta }: TokenBlock,
  inverse: Float64Array,
  of: InverseErrors,
  { factor, sum }: { readonly factor: Conversion; readonly sum: number },
): void {
  const { keys, keyErrors, readErrors, reads, fresh, freshErrors, values, valueErrors } = work;
  const { moved, square, product, scratch } = work;
  for (let i = 0; i < n * n; i++) square[i] = of.error[i] + of.rounding[i];
  const roundAll = (to: Float64Array, sizes: Float64Array, exact: Float64Array) => {
    for (let i = 0; i < to.length; i++) {
      const size = Math.abs(exact[i]) + to[i];
      to[i] = factor.error(size);
      sizes[i] = size + to[i];
    }
  };
  for (const [errors, magnitudes, own] of [
    [readErrors, keys, keyErrors],
    [freshErrors, values, valueErrors],
  ]) {
    const columns = errors.length / work.norms.length;
    errors.fill(0);
    addProduct(errors, square, magnitudes, { rows: n, inner: n, columns });
    // Of the operand and of the sum.
    for (let i = 0; i < n * columns; i++) scratch[i] = own[i] + sum * (magnitudes[i] + own[i]);
    addProduct(errors, of.largest, scratch, { rows: n, inner: n, columns });
  }
  const columns = product.length / work.norms.length;
  for (let i = 0; i < n * columns; i++) product[i] = beta[Math.floor(i / columns)] * v[i];
  moved.fill(0);
  addProduct(moved, inverse, product, { rows: n, inner: n, columns });
  roundAll(freshErrors, fresh, moved);
  roundAll(readErrors, keys, reads);
}
