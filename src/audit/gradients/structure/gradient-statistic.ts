import type { ErrorStatistic } from '../../structure/error-statistic.js';

/**
 * Sums that roundings leave near zero and a bug does not: `scale` is the slope of a gradient on the exact one, less one;
 * `sum` the error of a column's sum over all rows of a head (for dV that Σ dV = Σ dO, for dK that Σ dS = 0); `pairing` the
 * difference of ⟨Q, dQ⟩ and ⟨K, dK⟩, which are the same number, relative to the sizes of their terms.
 */
export const gradientTests = ['scale', 'sum', 'pairing'] as const;
/** One of {@link gradientTests}. */
export type GradientTest = (typeof gradientTests)[number];

/** One statistic against its threshold. */
export interface GradientStatistic extends ErrorStatistic<GradientTest> {
  readonly scope: 'tile' | 'head';
  readonly column: number | null;
}
