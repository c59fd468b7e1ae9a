import type { RecurrentArithmetic } from '../../../../kernels/recurrent/index.js';
import type { RecurrentShape } from '../../../problem/index.js';
import type { BlockMatrices } from './block-matrices.js';
import type { InputErrors } from './input-errors.js';
import { inverseBounder, type InverseErrors } from './inverse-error.js';
import { addProduct, setMagnitudes, setRowNorms } from './matrices.js';
import { compose, type Conversion, type Roundings } from './roundings.js';
import type { TokenBlock } from './token-blocks.js';

/** A state as products read it. */
export interface ReadState {
  readonly exact: Float64Array;
  /** Its elements at most; beside them columns may err by `norms`. */
  readonly magnitudes: Float64Array;
  readonly norms: Float64Array;
  /** What a product with its copy as an operand errs by in each of its elements: `magnitudes` and `norms` times the share, and underflow. */
  readonly operandErrors: Float64Array;
  readonly operandShare: number;
}

/** out += a M + share ‖a‖ ρ, by row of a ≥ 0: what such rows make of elements M and column norms ρ. */
export function addRead(
  out: Float64Array,
  a: Float64Array,
  elements: Float64Array,
  { norms, share }: { readonly norms: Float64Array; readonly share: number },
  { rows, rowNorms }: { readonly rows: number; readonly rowNorms: Float64Array },
): void {
  const columns = norms.length;
  const inner = elements.length / columns;
  addProduct(out, a, elements, { rows, inner, columns });
  setRowNorms(rowNorms, a, inner, rows);
  for (let t = 0; t < rows; t++)
    for (let c = 0; c < columns; c++) out[t * columns + c] += share * rowNorms[t] * norms[c];
}

/** What a chunk writes, [n, value dimension]. */
export interface ChunkWrites {
  /** N. */
  readonly exact: Float64Array;
  /** |N̂| at most. */
  readonly largest: Float64Array;
  /** What N̂ errs by from U − W Ŝ, the state as it is in the kernel. */
  readonly errors: Float64Array;
  /** W, [n, key dimension]. */
  readonly reads: Float64Array;
}

/** Bounds what a chunk writes; what it returns is good until the next call. */
export type ChunkWriter = (
  block: TokenBlock,
  matrices: BlockMatrices,
  decayErrors: Float64Array,
  state: ReadState,
) => ChunkWrites;

/** What the operands β k e^G and β v err by as terms of sums, in place of the operands' magnitudes. */
function setOperandErrors(
  errors: Float64Array,
  magnitudes: Float64Array,
  size: number,
  made: (at: number) => number,
  { operand, sum }: { readonly operand: Conversion; readonly sum: number },
): void {
  for (let i = 0; i < size; i++) {
    const before = magnitudes[i] * made(i);
    const error = before + operand.error(magnitudes[i] + before);
    errors[i] = error + sum * (magnitudes[i] + error);
  }
}

/** The arithmetic of a writer. */
export interface WriterContext {
  readonly arithmetic: RecurrentArithmetic;
  readonly roundings: Roundings;
  readonly inputs: InputErrors;
  readonly shape: RecurrentShape;
}

/** A writer of delta writes, N = U − W S with W = T (β k e^G) and U = T (β v), for chunks of up to `most` tokens. */
export function deltaWriter(
  { arithmetic, roundings, inputs, shape }: WriterContext,
  most: number,
): ChunkWriter {
  const { keyDim, valueDim } = shape;
  const { of, operation } = roundings;
  const sum = roundings.sum(most + 2);
  const readSum = roundings.sum(keyDim + most + 4);
  const invert = inverseBounder(most, {
    order: arithmetic.inverse,
    sum,
    rounded: of.inverse.error,
  });
  const ofKeys = () => new Float64Array(most * keyDim);
  const ofValues = () => new Float64Array(most * valueDim);
  const work = {
    keys: ofKeys(),
    keyErrors: ofKeys(),
    reads: ofKeys(),
    readErrors: ofKeys(),
    values: ofValues(),
    valueErrors: ofValues(),
    residual: ofValues(),
    raised: ofValues(),
    fresh: ofValues(),
    freshErrors: ofValues(),
    exact: ofValues(),
    errors: ofValues(),
    largest: ofValues(),
    inverse: new Float64Array(most * most),
    norms: new Float64Array(most),
  };

  /** β v, β k e^G and their errors; R = β v − (β k e^G) S and |R̂| at most, into `raised`. */
  function setOperands(
    block: TokenBlock,
    matrices: BlockMatrices,
    decayErrors: Float64Array,
    state: ReadState,
  ) {
    const { count, v, beta } = block;
    const { keys, keyErrors, values, valueErrors, residual, raised, norms } = work;
    const [ofKey, ofValue] = [count * keyDim, count * valueDim];
    const fixed = compose(inputs.normalised, 3 * operation);
    setMagnitudes(keys, matrices.startKeys, ofKey);
    const made = { operand: of.operand, sum };
    setOperandErrors(keyErrors, keys, ofKey, (i) => fixed + (1 + fixed) * decayErrors[i], made);
    residual.fill(0);
    addProduct(residual, matrices.startKeys, state.exact, {
      rows: count,
      inner: keyDim,
      columns: valueDim,
    });
    setRowNorms(norms, keys, keyDim, count);
    for (let t = 0; t < count; t++)
      for (let c = 0; c < valueDim; c++) {
        const at = t * valueDim + c;
        const value = beta[t] * v[at];
        residual[at] = value - residual[at];
        raised[at] = Math.abs(residual[at]) + norms[t] * state.norms[c];
        values[at] = Math.abs(value);
      }
    setOperandErrors(valueErrors, values, ofValue, () => 2 * operation, made);
  }

  /** U's error, its rounding included, and U's size at most: into `freshErrors` and `fresh`. */
  function setFresh(block: TokenBlock, inverse: Float64Array, errors: InverseErrors): void {
    const { count: n, v, beta } = block;
    const { fresh, freshErrors, values, valueErrors, exact } = work;
    const size = { rows: n, inner: n, columns: valueDim };
    for (let t = 0; t < n; t++)
      for (let c = 0; c < valueDim; c++) exact[t * valueDim + c] = beta[t] * v[t * valueDim + c];
    fresh.fill(0);
    addProduct(fresh, inverse, exact, size);
    freshErrors.fill(0);
    addProduct(freshErrors, errors.error, values, size);
    addProduct(freshErrors, work.inverse, valueErrors, size);
    for (let i = 0; i < n * valueDim; i++) {
      const size = Math.abs(fresh[i]) + freshErrors[i];
      // Its error but the rounding is counted with W's, by the residual.
      freshErrors[i] = of['write-factor'].error(size);
      fresh[i] = size + freshErrors[i];
    }
  }

  /** W, and its error's two parts: the rounding into `readErrors`; then |Ŵ| at most into `keys`. */
  function setReads(n: number, matrices: BlockMatrices, errors: InverseErrors): void {
    const { keys, keyErrors, reads, readErrors } = work;
    const size = { rows: n, inner: n, columns: keyDim };
    reads.fill(0);
    addProduct(reads, matrices.inverse, matrices.startKeys, size);
    readErrors.fill(0);
    addProduct(readErrors, errors.error, keys, size);
    addProduct(readErrors, work.inverse, keyErrors, size);
    for (let i = 0; i < n * keyDim; i++) {
      const largest = Math.abs(reads[i]) + readErrors[i];
      readErrors[i] = of['write-factor'].error(largest);
      keys[i] = largest + readErrors[i];
    }
  }

  return (block, matrices, decayErrors, state) => {
    const { count: n } = block;
    const { errors, valueErrors, keyErrors, exact, largest, fresh, norms } = work;
    const columns = { rows: n, inner: n, columns: valueDim };
    setOperands(block, matrices, decayErrors, state);
    const inverse = invert({ n, ...matrices });
    for (let i = 0; i < n * n; i++) work.inverse[i] = inverse.magnitude[i] + inverse.error[i];
    setFresh(block, matrices.inverse, inverse);
    // Terms of the products with T̂.
    const whole = { norms: state.norms, share: 1 };
    const place = { rows: n, rowNorms: norms };
    addRead(valueErrors, keyErrors, state.magnitudes, whole, place);
    errors.fill(0);
    addProduct(errors, inverse.error, work.raised, columns);
    addProduct(errors, work.inverse, valueErrors, columns);
    setReads(n, matrices, inverse);
    addRead(errors, work.readErrors, state.magnitudes, whole, place);
    const operand = { norms: state.norms, share: state.operandShare };
    addRead(errors, work.keys, state.operandErrors, operand, place);
    exact.fill(0);
    addProduct(exact, matrices.inverse, work.residual, columns);
    setRowNorms(norms, work.reads, keyDim, n);
    for (let t = 0; t < n; t++)
      for (let c = 0; c < valueDim; c++) {
        const at = t * valueDim + c;
        const error = errors[at] + work.freshErrors[at] + readSum * fresh[at];
        const size = Math.abs(exact[at]) + norms[t] * state.norms[c] + error;
        errors[at] = error + of.write.error(size);
        largest[at] = size + of.write.error(size);
      }
    return { exact, largest, errors, reads: work.reads };
  };
}

/** A writer of additive writes, which are the values. */
export function additiveWriter({ shape, inputs }: WriterContext, most: number): ChunkWriter {
  const { valueDim, keyDim } = shape;
  const exact = new Float64Array(most * valueDim);
  const errors = new Float64Array(most * valueDim);
  const largest = new Float64Array(most * valueDim);
  const reads = new Float64Array(most * keyDim);
  return ({ count, v }) => {
    for (let i = 0; i < count * valueDim; i++) {
      exact[i] = v[i];
      errors[i] = inputs.value.error(Math.abs(v[i]));
      largest[i] = Math.abs(v[i]) + errors[i];
    }
    return { exact, errors, largest, reads };
  };
}
