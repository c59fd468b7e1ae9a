import { addProduct, productWithTransposed, setMagnitudes, setRowNorms } from './matrices.js';

/**
 * What a block of n tokens makes of an error of the state before it, δ, and what it adds: D δ − Kᵀ (R δ) + Kᵀ (T e + ε) + η, with |e|, |ε| and |η|
 * bounded.
 */
export interface Step {
  readonly count: number;
  /** K, R: [n, key dimension]; D by key dimension. */
  readonly keys: Float64Array;
  /** Null where writes read nothing. */
  readonly reads: Float64Array | null;
  readonly decay: Float64Array;
  /** ε, [n, value dimension]. */
  readonly writeError: Float64Array;
  /** T, [n, n], and e, where there is such a part. */
  readonly inverse: Float64Array | null;
  readonly writeErrorBefore: Float64Array | null;
  /** η: a part bounded by element, [key dimension, value dimension], and the norms of the columns of the other part. */
  readonly stateError: Float64Array | null;
  readonly stateNorms: Float64Array;
  /** The norms of the columns of the whole error before the block, at most. */
  readonly normsBefore: Float64Array;
}

/** Rows that errors are followed to: x with x·δ the error of something, δ the state's. */
export interface Followed {
  readonly rows: Float64Array;
  readonly count: number;
  /** Where its errors are added, [count, value dimension]. */
  readonly errors: Float64Array;
}

/** Working memory of {@link followBack}. */
interface Work {
  readonly coefficients: Float64Array;
  readonly magnitudes: Float64Array;
  readonly norms: Float64Array;
}

/** A remainder of at most this share of what is there already is bounded by norms. */
const smallShare = 2 ** -7;

/** Adds what the state errs by before a step, by norms. */
function addRemainder(
  { errors, count }: Followed,
  norms: Float64Array,
  ofState: Float64Array,
): void {
  const dim = ofState.length;
  for (let t = 0; t < count; t++)
    for (let c = 0; c < dim; c++) errors[t * dim + c] += norms[t] * ofState[c];
}

/** Whether what the state errs by is small beside what each row has already. */
function isSmall({ errors, count }: Followed, norms: Float64Array, ofState: Float64Array): boolean {
  const dim = ofState.length;
  let total = 0;
  for (let c = 0; c < dim; c++) total += ofState[c];
  for (let t = 0; t < count; t++) {
    let sum = 0;
    for (let c = 0; c < dim; c++) sum += errors[t * dim + c];
    if (!(norms[t] * total <= smallShare * sum)) return false;
  }
  return true;
}

/** Adds what one step adds to the errors of the rows, and takes the rows to before it. */
function passStep(followed: Followed, step: Step, work: Work, keyDim: number): void {
  const { rows, count, errors } = followed;
  const { coefficients, magnitudes, norms } = work;
  const { keys, reads, decay, writeError, stateError, stateNorms } = step;
  const columns = stateNorms.length;
  if (stateError) {
    setMagnitudes(magnitudes, rows, count * keyDim);
    addProduct(errors, magnitudes, stateError, { rows: count, inner: keyDim, columns });
  }
  addRemainder(followed, norms, stateNorms);
  const size = { rows: count, inner: keyDim, columns: step.count };
  productWithTransposed(coefficients, rows, keys, size);
  setMagnitudes(magnitudes, coefficients, count * step.count);
  const ofWrites = { rows: count, inner: step.count, columns };
  addProduct(errors, magnitudes, writeError, ofWrites);
  if (step.inverse && step.writeErrorBefore) {
    magnitudes.fill(0);
    const square = { rows: count, inner: step.count, columns: step.count };
    addProduct(magnitudes, coefficients, step.inverse, square);
    setMagnitudes(magnitudes, magnitudes, count * step.count);
    addProduct(errors, magnitudes, step.writeErrorBefore, ofWrites);
  }
  for (let t = 0; t < count; t++) for (let i = 0; i < keyDim; i++) rows[t * keyDim + i] *= decay[i];
  if (reads === null) return;
  for (let i = 0; i < count * step.count; i++) coefficients[i] = -coefficients[i];
  addProduct(rows, coefficients, reads, { rows: count, inner: step.count, columns: keyDim });
}

/** Follows rows back through steps, the last first, and adds what their errors are at most; destroys the rows. */
export type BackFollower = (
  followed: Followed,
  steps: readonly Step[],
  normsNow: Float64Array,
) => void;

/**
 * A follower of up to `most` rows. Where what is left is small, or the steps end, it is bounded by the norm of the row and of the
 * state's columns.
 */
export function backFollower(most: number, keyDim: number, largestStep: number): BackFollower {
  const work: Work = {
    coefficients: new Float64Array(most * largestStep),
    magnitudes: new Float64Array(most * Math.max(largestStep, keyDim)),
    norms: new Float64Array(most),
  };
  return (followed, steps, normsNow) => {
    const { rows, count } = followed;
    let ofState = normsNow;
    setRowNorms(work.norms, rows, keyDim, count);
    for (let m = steps.length - 1; m >= 0 && !isSmall(followed, work.norms, ofState); m--) {
      passStep(followed, steps[m], work, keyDim);
      ofState = steps[m].normsBefore;
      setRowNorms(work.norms, rows, keyDim, count);
    }
    addRemainder(followed, work.norms, ofState);
  };
}
