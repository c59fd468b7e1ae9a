import { decodeToFloat64, formats } from '../formats/index.js';
import type { Tensor } from '../problem/index.js';
import { roundedTo } from './match-meter.js';

/** The likeness of two gradients of the same problem in one format. */
export interface GradientLikeness {
  /** Number of elements not correctly rounded in one of the two, and of those of them that are equal. */
  readonly misrounded: number;
  readonly equalMisrounded: number;
  /** Largest difference, over elements finite in both. */
  readonly largestDifference: number;
}

/**
 * The likeness of two gradients: correctly rounded elements agree whatever their origin, so that the others decide.
 * @param exact of the same elements
 */
export function gradientLikeness(
  given: Tensor,
  made: Tensor,
  exact: Float64Array,
): GradientLikeness {
  const correct = roundedTo(given.format, exact);
  const a = decodeToFloat64(given.data, formats[given.format]);
  const b = decodeToFloat64(made.data, formats[made.format]);
  let [misrounded, equalMisrounded, largestDifference] = [0, 0, 0];
  for (let i = 0; i < a.length; i++) {
    const isMisrounded = !(Object.is(a[i], correct[i]) && Object.is(b[i], correct[i]));
    if (isMisrounded) misrounded++;
    if (isMisrounded && Object.is(a[i], b[i])) equalMisrounded++;
    const difference = Math.abs(a[i] - b[i]);
    if (Number.isFinite(difference)) largestDifference = Math.max(largestDifference, difference);
  }
  return { misrounded, equalMisrounded, largestDifference };
}
