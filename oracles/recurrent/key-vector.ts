import { decodeTensor } from '../../src/formats/index.js';
import { sumError } from '../../src/arith/index.js';
import type { Tensor } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';

const u = 2 ** -53;

/** What norms are raised by, to be bounds in spite of roundings, and of squares that underflow. */
export const normSlack = 1 + 2 ** -40;
/** See {@link normSlack}. */
export const normFloor = 2 ** -500;

/** A query or key of one token and head. */
export interface KeyVector {
  /** Zeros from the key dimension on. */
  readonly elements: Float64Array;
  /** A bound on the Euclidean norm, exact and as computed. */
  norm: number;
  /** √(Σx² + epsilon), relative error below 2.1u; null for a vector that is not normalised. */
  divisor: number | null;
}

/** A vector of zeros, not normalised. */
export function keyVector(paddedDim: number): KeyVector {
  return { elements: new Float64Array(paddedDim), norm: 0, divisor: null };
}

/** The relative error of the elements of a normalised vector, at most. */
export const normalisationError = 4 * u;

/** Σ x² + epsilon, relative error below 2.1u. */
function sumOfSquares(elements: Float64Array, epsilon: number): number {
  let sum = epsilon;
  let errors = 0;
  for (const x of elements) {
    const next = sum + x * x;
    errors += sumError(sum, x * x, next);
    sum = next;
  }
  return sum + errors;
}

/**
 * Reads q or k of a token, counted over [batch, tokens], and a key head into `vector`, normalised if there is an epsilon.
 * @throws RequestError for elements that are not finite
 */
export function readKeyVector(
  tensor: Tensor,
  at: number,
  epsilon: number | undefined,
  vector: KeyVector,
): void {
  const { elements } = vector;
  const dim = tensor.shape[3];
  decodeTensor(tensor, at * dim, (at + 1) * dim, elements);
  const squares = sumOfSquares(elements, 0);
  if (!(squares < Infinity))
    throw new RequestError(
      'an element of q or k is not finite or its square is too large; give smaller ones',
    );
  vector.norm = Math.sqrt(squares) * normSlack + normFloor;
  vector.divisor = null;
  if (epsilon === undefined) return;
  const divisor = Math.sqrt(sumOfSquares(elements, epsilon));
  for (let i = 0; i < dim; i++) elements[i] /= divisor;
  // The exact vector is shorter than 1; what the computed one exceeds that by is within the radius' slack.
  vector.divisor = divisor;
  vector.norm = Math.min(1, (vector.norm / divisor) * normSlack + normFloor);
}
