import type { BlockMatrices } from './block-matrices.js';
import type { OperandErrors } from './chunk-terms.js';
import type { ChunkWriter, ReadState, WriterContext } from './chunk-writes.js';
import { inverseBounder, type InverseErrors } from './inverse-error.js';
import { addProduct, setRowNorms } from './matrices.js';
import { compose } from './roundings.js';
import { sharedRoundings } from './shared-rounding.js';
import type { TokenBlock } from './token-blocks.js';
import {
  setFactors,
  setOperandErrors,
  setOperands,
  writerWork,
  type WriterWork,
} from './write-operands.js';

/**
 * What A and its inverse err by: into `inner` |F N̂|, which T multiplies, N̂ that of T̂ before it is rounded; and into `errors` what its rounding makes of N.
 * Before, `inner` has what β k's rounding makes of A times N of the kernel's state.
 */
function addInverseErrors(
  work: WriterWork,
  matrices: BlockMatrices,
  of: InverseErrors,
  n: number,
  columns: number,
): void {
  const { errors, inner, moved, raised, fromState, exact, product, square } = work;
  const size = { rows: n, inner: n, columns };
  for (let i = 0; i < n * columns; i++) product[i] = Math.abs(exact[i]) + fromState[i];
  for (let i = 0; i < n * n; i++) square[i] = matrices.ownError[i] + of.residual[i];
  addProduct(inner, square, product, size);
  for (let i = 0; i < n * n; i++) square[i] = matrices.triangleError[i] + of.residual[i];
  // Row by row what N̂ errs by beside what the state's error makes of it, |T| |F N̂|, and what |F| makes of that.
  moved.fill(0);
  for (let s = 0; s < n; s++) {
    const row = s * columns;
    addRow(inner, row, square.subarray(s * n, s * n + s), moved, columns);
    addRow(moved, row, of.magnitude.subarray(s * n, s * n + s + 1), inner, columns);
  }
  addProduct(errors, of.rounding, raised, size);
}

/** Adds the sum of rows of a matrix, with a factor each, to the row of `to` that begins at `at`. */
function addRow(
  to: Float64Array,
  at: number,
  factors: Float64Array,
  rows: Float64Array,
  columns: number,
): void {
  for (let j = 0; j < factors.length; j++) {
    const factor = factors[j];
    if (factor === 0) continue;
    for (let c = 0, from = j * columns; c < columns; c++) to[at + c] += factor * rows[from + c];
  }
}

/**
 * What operands err by: into `inner` what T multiplies; into `errors` what the inverse's errors make of that, and the sums of T's products, by the norms of β k e^G and
 * of the state.
 */
function addOperandErrors(
  work: WriterWork,
  of: InverseErrors,
  state: ReadState,
  n: number,
  sum: number,
): void {
  const { errors, inner, keyErrors, valueErrors, values, square, norms, product } = work;
  for (let i = 0; i < n * n; i++) square[i] = of.error[i] + of.rounding[i];
  const columns = state.sizes.length;
  const keyDim = keyErrors.length / work.norms.length;
  const size = { rows: n, inner: n, columns };
  addProduct(valueErrors, keyErrors, state.magnitudes, { rows: n, inner: keyDim, columns });
  addProduct(errors, square, valueErrors, size);
  for (let i = 0; i < n * columns; i++) inner[i] += valueErrors[i];
  for (let i = 0; i < n * keyDim; i++) keyErrors[i] += work.startKeys[i];
  setRowNorms(norms, keyErrors, keyDim, n);
  for (let i = 0; i < n * columns; i++) {
    const ofKey = norms[Math.floor(i / columns)] * state.sizes[i % columns];
    product[i] = sum * (values[i] + valueErrors[i] + ofKey);
  }
  addProduct(errors, of.largest, product, size);
}

/** What writers of a problem share. */
function writerMachine({ arithmetic, roundings, inputs, shape }: WriterContext, most: number) {
  const { keyDim, valueDim } = shape;
  const { of, operation } = roundings;
  const sum = roundings.sum(most + 2);
  const readSum = roundings.sum(keyDim + most + 4);
  const order = arithmetic.inverse;
  const invert = inverseBounder(most, { order, sum, rounded: of.inverse.error });
  const addShared = sharedRoundings(most, keyDim, valueDim);
  const work = writerWork(most, keyDim, valueDim);
  const fixed = compose(inputs.normalised, 3 * operation);
  return { shape, keyDim, valueDim, of, operation, sum, readSum, invert, addShared, work, fixed };
}

type WriterMachine = ReturnType<typeof writerMachine>;

/** e and ε but for N's own rounding, and W's share of the sums. */
function setErrors(
  m: WriterMachine,
  block: TokenBlock,
  matrices: BlockMatrices,
  terms: OperandErrors,
  state: ReadState,
): InverseErrors {
  const { shape, keyDim, valueDim, of, operation, sum, invert, addShared, work, fixed } = m;
  const { count: n } = block;
  const { keys, keyErrors, values, valueErrors, inner, errors, exact } = work;
  const ofDecays = terms.decays;
  setOperands(work, block, matrices, state, shape);
  work.startKeys.set(keys);
  const strengths = block.strengthErrors;
  const ofKey = (i: number) => compose(fixed, ofDecays[i], strengths[Math.floor(i / keyDim)]);
  const ofValue = (i: number) => 2 * operation + strengths[Math.floor(i / valueDim)];
  setOperandErrors(keyErrors, keys, n * keyDim, ofKey, of.operand);
  setOperandErrors(valueErrors, values, n * valueDim, ofValue, of.operand);
  const inverse = invert({ n, ...matrices });
  setFactors(work, block, matrices.inverse, inverse, { factor: of['write-factor'], sum });
  inner.fill(0);
  errors.fill(0);
  const { errors: stateErrors } = state;
  addShared(inner, { block, shared: terms.shared, writes: exact, stateErrors });
  addInverseErrors(work, matrices, inverse, n, valueDim);
  addOperandErrors(work, inverse, state, n, sum);
  const ofState = { rows: n, inner: keyDim, columns: valueDim };
  addProduct(errors, work.readErrors, state.magnitudes, ofState);
  return inverse;
}

/** Adds the sums of W S and with U, and N's rounding. `product` is |T| e. */
function finish(m: WriterMachine, n: number, state: ReadState): void {
  const { keyDim, valueDim, of, readSum, work } = m;
  const { exact, errors, largest, fresh, freshErrors, readSizes, fromState, norms } = work;
  const { keys, reads } = work;
  setRowNorms(norms, keys, keyDim, n);
  for (let i = 0; i < n * keyDim; i++) keys[i] -= Math.abs(reads[i]);
  setRowNorms(work.moreNorms, keys, keyDim, n);
  const ofState = { rows: n, inner: keyDim, columns: valueDim };
  addProduct(fromState, readSizes, state.copyErrors, ofState);
  for (let t = 0; t < n; t++)
    for (let c = 0; c < valueDim; c++) {
      const at = t * valueDim + c;
      const copy = state.copyNorms[c];
      const ofSums = readSum * (fresh[at] + norms[t] * (state.sizes[c] + copy));
      const error = errors[at] + freshErrors[at] + work.moreNorms[t] * copy + ofSums;
      const size = Math.abs(exact[at]) + work.product[at] + fromState[at] + error;
      const rounded = of.write.error(size);
      errors[at] = error + rounded;
      largest[at] = size + rounded;
    }
}

/** A writer of delta writes, N = U − W S with W = T (β k e^G) and U = T (β v), for chunks of up to `most` tokens. */
export function deltaWriter(context: WriterContext, most: number): ChunkWriter {
  const m = writerMachine(context, most);
  const { valueDim, work } = m;
  return (block, matrices, terms, state) => {
    const { count: n } = block;
    const { exact, errors, largest, inner, reads, product } = work;
    const inverse = setErrors(m, block, matrices, terms, state);
    product.fill(0);
    addProduct(product, inverse.magnitude, inner, { rows: n, inner: n, columns: valueDim });
    finish(m, n, state);
    return { exact, largest, before: inner, errors, reads, readErrors: work.keys, inverse };
  };
}
