import { normalisationError, type KeyVector } from './key-vector.js';
import { slack, tiny, type Roundings } from './radius.js';
import type { SumBound } from './adjoint-radius.js';
import type { ScaledReferenceQuantity } from '../attention/attention.js';

const u = 2 ** -53;

/** x·y, four terms at a time, rounded as the loops over states round. */
function dot(x: Float64Array, y: Float64Array): number {
  let sum = 0;
  for (let i = 0; i < x.length; i += 4)
    sum += x[i] * y[i] + x[i + 1] * y[i + 1] + (x[i + 2] * y[i + 2] + x[i + 3] * y[i + 3]);
  return sum;
}

/**
 * Writes the gradient with respect to a query or key from that with respect to what the recurrence took: the same where it was not normalised, else
 * (y − x (x·y)) / divisor of the normalised x.
 * @param gradient y, padded as `vector` is
 * @param bound of y by rows and in the Euclidean norm over them
 */
export function throughNormalisation(
  { elements, divisor }: KeyVector,
  gradient: Float64Array,
  bound: SumBound,
  roundings: Roundings,
  { values, radius, magnitude }: ScaledReferenceQuantity,
): void {
  if (divisor === null) {
    values.set(gradient.subarray(0, values.length));
    radius.fill(bound.radius);
    magnitude.fill(bound.magnitude);
    return;
  }
  const along = dot(elements, gradient);
  const ofProjection = (roundings.dot + normalisationError + u) * bound.magnitude + tiny;
  const shared = (bound.radius + ofProjection) / divisor + tiny;
  for (let i = 0; i < values.length; i++) {
    values[i] = (gradient[i] - elements[i] * along) / divisor;
    radius[i] = (shared + 5 * u * Math.abs(values[i])) * slack;
  }
  magnitude.fill(bound.magnitude / divisor);
}
