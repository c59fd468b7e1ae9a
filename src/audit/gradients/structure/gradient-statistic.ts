import { formatNumber } from '../../../words/index.js';
import type { ErrorStatistic, Statement } from '../../structure/error-statistic.js';
import type { StructureTest } from '../../structure/structure-result.js';

/**
 * Sums that roundings leave near zero and a bug does not: `scale` is the slope of a gradient on the exact one, less one;
 * `sum` the error of a column's sum over all rows of a head (for dV that Σ dV = Σ dO, for dK that Σ dS = 0); `pairing` the
 * difference of ⟨Q, dQ⟩ and ⟨K, dK⟩, which are the same number, relative to the sizes of their terms.
 */
export const gradientTests = ['scale', 'sum', 'pairing'] as const;
/** One of {@link gradientTests}. */
export type GradientTest = (typeof gradientTests)[number];

/** Sentences on the statistics that fail, in the order of their findings; outputs have that of `scale`. */
export const gradientStatements: Readonly<Record<Exclude<GradientTest, StructureTest>, Statement>> =
  {
    sum: ({ statistic, threshold, column }, where, _, sum) =>
      `${sum} in column ${column} of ${where} by ${formatNumber(Math.abs(statistic))}; rounding explains ${formatNumber(threshold)}`,
    pairing: ({ statistic, threshold }, where) =>
      `⟨Q, dQ⟩ and ⟨K, dK⟩ of ${where}, which are one number, differ by ${formatNumber(Math.abs(statistic))} of the sizes of their terms; rounding explains ${formatNumber(threshold)}`,
  };

/** One statistic against its threshold. */
export interface GradientStatistic extends ErrorStatistic<GradientTest> {
  readonly scope: 'tile' | 'head';
  readonly column: number | null;
}
