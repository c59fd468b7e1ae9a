import { normFloor, normSlack } from './key-vector.js';
import {
  decayedRadius,
  slack,
  spreadOf,
  tiny,
  type ColumnErrors,
  type DecayBounds,
  type Roundings,
} from './radius.js';

/**
 * Radii of the backward pass. docs/theory/recurrent-oracle.md proves them, in the section on gradients; the names of its symbols are in the comments.
 */

const u = 2 ** -53;

/** The largest value dimension whose sums of bounds err by less than {@link slack}. */
export const largestValueDim = 4096;

/** A computed vector over the value dimension, |values − exact| ≤ radius. */
export interface UncertainVector {
  readonly values: Float64Array;
  readonly radius: Float64Array;
}

/** The radius of a sum, and a bound on the sum of its terms' sizes. */
export interface SumBound {
  readonly radius: number;
  readonly magnitude: number;
}

/**
 * The bound of A x, by rows and in the Euclidean norm over them, from the errors of the columns of A and those of x; `relative` is what a
 * term errs by in the sum.
 */
export function boundOfSum(
  { radius, norm }: ColumnErrors,
  { values, radius: errors }: UncertainVector,
  relative: number,
): SumBound {
  let sum = 0;
  let magnitude = 0;
  for (let c = 0; c < values.length; c++) {
    const size = Math.abs(values[c]);
    const product = norm[c] * size;
    sum += radius[c] * (size + errors[c]) + norm[c] * errors[c] + relative * product;
    magnitude += product;
  }
  return { radius: (sum + tiny) * slack, magnitude };
}

/** Writes a = scale · dO, rounded once. */
export function setOutgoing(
  scale: number,
  outputGradient: Float64Array,
  { values, radius }: UncertainVector,
): void {
  for (let c = 0; c < values.length; c++) {
    values[c] = scale * outputGradient[c];
    radius[c] = u * Math.abs(values[c]) + tiny;
  }
}

/** Moves the errors of G past G += q aᵀ; `squares` is Σ_i G_i² by column, as computed. */
export function addOutputErrors(
  { radius, norm }: ColumnErrors,
  queryNorm: number,
  outgoing: UncertainVector,
  { vector }: Roundings,
  squares: Float64Array,
): void {
  for (let c = 0; c < radius.length; c++) {
    norm[c] = Math.sqrt(squares[c]) * normSlack + normFloor;
    const ofProduct = (vector + u) * Math.abs(outgoing.values[c]) + outgoing.radius[c];
    radius[c] = (radius[c] + queryNorm * ofProduct + u * norm[c] + tiny) * slack;
  }
}

/** Sets `errors` to those of the decayed columns. */
export function setDecayedErrors(
  errors: ColumnErrors,
  { radius, norm }: ColumnErrors,
  decay: DecayBounds,
): void {
  const forgets = decay.largest === 0;
  for (let c = 0; c < radius.length; c++) {
    errors.radius[c] = decayedRadius(radius[c], norm[c], decay) * slack;
    errors.norm[c] = forgets ? 0 : decay.largest * norm[c] * normSlack + normFloor;
  }
}

/** Sets `read` to the radius of Aᵀk and to ‖k‖ ‖A_c‖, from the errors of the columns of A. */
export function setReadErrors(
  read: ColumnErrors,
  { radius, norm }: ColumnErrors,
  keyNorm: number,
  { dot }: Roundings,
): void {
  for (let c = 0; c < radius.length; c++) {
    read.norm[c] = keyNorm * norm[c];
    read.radius[c] = (keyNorm * radius[c] + dot * read.norm[c] + tiny) * slack;
  }
}

/** Adds to the radii of values what one more rounding costs. */
export function addRounding({ values, radius }: UncertainVector): void {
  for (let c = 0; c < values.length; c++) radius[c] = (radius[c] + u * Math.abs(values[c])) * slack;
}

/** Writes β x, rounded once; 0 for β = 0, also of an x that overflowed. */
export function setProduct(
  strength: number,
  { values, radius }: UncertainVector,
  product: UncertainVector,
): void {
  for (let c = 0; c < values.length; c++) {
    const value = strength === 0 ? 0 : strength * values[c];
    const ofFactor = Math.abs(strength) * radius[c] + tiny;
    product.values[c] = value;
    product.radius[c] = strength === 0 ? 0 : (ofFactor + u * Math.abs(value)) * slack;
  }
}

/** Moves the errors of G past a delta write, G + k yᵀ with y = −β Gᵀk as computed; `squares` is that of the new G. */
export function passWriteErrors(
  { radius, norm }: ColumnErrors,
  { keyNorm, strength }: { readonly keyNorm: number; readonly strength: number },
  { vector, dot }: Roundings,
  ofRead: Float64Array,
  squares: Float64Array,
): void {
  if (strength === 0) return;
  const spread = spreadOf(strength, keyNorm);
  for (let c = 0; c < radius.length; c++) {
    const y = Math.abs(ofRead[c]);
    const ofY = Math.abs(strength) * (dot * keyNorm * norm[c] + tiny) + u * y + tiny;
    norm[c] = Math.sqrt(squares[c]) * normSlack + normFloor;
    const local = keyNorm * (ofY + (vector + u) * y) + u * norm[c] + tiny;
    radius[c] = (spread * radius[c] + local) * slack;
  }
}
