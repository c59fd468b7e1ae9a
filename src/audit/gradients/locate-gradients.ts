import type { Problem, ProblemShape } from '../../problem/index.js';
import {
  createKeyLocator,
  createRowLocator,
  locateQuantity,
  locatorOf,
  placed,
  type KeySample,
  type RowLocator,
} from '../rows/index.js';
import type { JudgedGradientName } from './gradient-quantities.js';
import type { JudgedGradient } from './judge-gradient.js';
import { placeShared, sharedShape } from './shared-gradients.js';

/** The locator of a gradient; null where its rows are where they seem to be. */
function gradientLocator(
  name: JudgedGradientName,
  problem: Problem,
  shape: ProblemShape,
  keys: KeySample | null,
): RowLocator | null {
  if (name === 'dq') return createRowLocator(problem, shape);
  if (name === 'dk' || name === 'dv') return createKeyLocator(problem, shape, keys);
  return locatorOf(placeShared(name, sharedShape(problem, shape, name), problem), (_, row) => row);
}

/**
 * Results of the tests of gradients, with the places of rows as they are in the whole problem, and of single elements within their
 * own sequences.
 * @param keys those that dK and dV were judged of; null for all
 */
export function locateGradients(
  gradients: readonly JudgedGradient[],
  problem: Problem,
  shape: ProblemShape,
  keys: KeySample | null = null,
): readonly JudgedGradient[] {
  return gradients.map((judged) => {
    const name = judged.quantity.name as JudgedGradientName;
    const locator = gradientLocator(name, problem, shape, keys);
    if (locator === null) return judged;
    const { error } = judged;
    return {
      ...locateQuantity(judged, locator),
      error: { ...error, worst: placed(error.worst, locator) },
    };
  });
}
