import { exp2Coefficients, type PolynomialDegree } from '../../../kernels/index.js';
import { minimaxExp2, type Minimax } from '../minimax.js';
import { errorExtremes, largestRelativeError, type ErrorAt } from '../polynomial-error.js';

/** How near FlashAttention-4's polynomial of a degree is to the best one. */
export interface MinimaxComparison {
  readonly degree: PolynomialDegree;
  /** The best polynomial with c0 = 1, as FlashAttention-4's have it, and with c0 free. */
  readonly best: Minimax;
  readonly bestFree: Minimax;
  /** FlashAttention-4's coefficients in exact arithmetic: the largest relative error on [0, 1]. */
  readonly largestError: ErrorAt;
  readonly extremes: readonly ErrorAt[];
  /** By how much of the best error FlashAttention-4's is larger. */
  readonly excess: number;
  /** The largest relative error in fp32 that the sweep found on [−126, 0]; null when not swept. */
  readonly float32Error: number | null;
  /** What of it the polynomial does not explain: the rounding of the reduction and of the sums. */
  readonly rounding: number | null;
}

/**
 * The comparison for a degree.
 * @param float32Error the largest relative error of the fp32 results, if known
 */
export function compareWithMinimax(
  degree: PolynomialDegree,
  float32Error: number | null,
): MinimaxComparison {
  const coefficients = exp2Coefficients[degree];
  const best = minimaxExp2(degree, 'c0 = 1');
  const largestError = largestRelativeError(coefficients);
  const size = Math.abs(largestError.error);
  return {
    degree,
    best,
    bestFree: minimaxExp2(degree, 'free'),
    largestError,
    extremes: errorExtremes(coefficients),
    excess: size / best.largestError - 1,
    float32Error,
    rounding: float32Error === null ? null : float32Error - size,
  };
}
