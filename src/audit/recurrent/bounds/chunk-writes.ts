import type { RecurrentArithmetic } from '../../../../kernels/index.js';
import type { RecurrentShape } from '../../../problem/index.js';
import type { BlockMatrices } from './block-matrices.js';
import type { InputErrors } from './input-errors.js';
import type { InverseErrors } from './inverse-error.js';
import { setRowNorms } from './matrices.js';
import type { Roundings } from './roundings.js';
import type { OperandErrors } from './chunk-terms.js';
import type { TokenBlock } from './token-blocks.js';

/** A state as products read it. */
export interface ReadState {
  readonly exact: Float64Array;
  /** What a kernel's errs by, and its elements at most. */
  readonly errors: Float64Array;
  readonly magnitudes: Float64Array;
  /** What its copy as an operand errs by besides; all products have one copy. */
  readonly copyErrors: Float64Array;
  /** The norms of the columns of `magnitudes` and of the copy's errors. */
  readonly sizes: Float64Array;
  readonly copyNorms: Float64Array;
}

/** out += share ‖a‖ times `norms`, by row of a. */
export function addByNorms(
  out: Float64Array,
  a: Float64Array,
  norms: Float64Array,
  share: number,
  { rows, rowNorms }: { readonly rows: number; readonly rowNorms: Float64Array },
): void {
  const columns = norms.length;
  setRowNorms(rowNorms, a, a.length / rowNorms.length, rows);
  for (let t = 0; t < rows; t++)
    for (let c = 0; c < columns; c++) out[t * columns + c] += share * rowNorms[t] * norms[c];
}

/** What a chunk writes, [n, value dimension]: N̂ is N of the kernel's state, but for T e + ε and what the copy of the state errs by. */
export interface ChunkWrites {
  /** N. */
  readonly exact: Float64Array;
  /** |N̂| at most. */
  readonly largest: Float64Array;
  /** |e| at most, of delta writes: what T multiplies. */
  readonly before: Float64Array | null;
  /** |ε| at most. */
  readonly errors: Float64Array;
  /** W, [n, key dimension], of delta writes, and what it errs by; T's errors. */
  readonly reads: Float64Array | null;
  readonly readErrors?: Float64Array;
  readonly inverse?: InverseErrors;
}

/** Bounds what a chunk writes; what it returns is good until the next call. */
export type ChunkWriter = (
  block: TokenBlock,
  matrices: BlockMatrices,
  terms: OperandErrors,
  state: ReadState,
) => ChunkWrites;

/** The arithmetic of a writer. */
export interface WriterContext {
  readonly arithmetic: RecurrentArithmetic;
  readonly roundings: Roundings;
  readonly inputs: InputErrors;
  readonly shape: RecurrentShape;
  readonly scale: number;
}

/** A writer of additive writes, which are the values. */
export function additiveWriter(
  { shape, inputs }: WriterContext,
  most: number,
): (block: TokenBlock) => ChunkWrites {
  const { valueDim } = shape;
  const ofValues = () => new Float64Array(most * valueDim);
  const [exact, errors, largest] = [ofValues(), ofValues(), ofValues()];
  return ({ count, v, valueErrors }) => {
    for (let i = 0; i < count * valueDim; i++) {
      const before = Math.abs(v[i]) * valueErrors[Math.floor(i / valueDim)];
      exact[i] = v[i];
      errors[i] = before + inputs.value.error(Math.abs(v[i]) + before);
      largest[i] = Math.abs(v[i]) + errors[i];
    }
    return { exact, errors, largest, before: null, reads: null };
  };
}
