import { formatNumber } from '../../words/index.js';
import type { GradientTest } from '../gradients/structure/gradient-statistic.js';
import type { Statement } from '../structure/error-statistic.js';
import type { StructureTest } from '../structure/structure-result.js';

/**
 * Statistics of a recurrence that roundings leave near zero: `scale` is the slope of a quantity on the exact one, less one; `bias` its
 * mean error; `chunk` the part that is missing of what a chunk of tokens, or the state before it, adds; `pairing` the difference of two sums that are one
 * number, relative to the sizes of their terms.
 */
export const recurrentTests = ['scale', 'bias', 'chunk', 'pairing'] as const;
/** One of {@link recurrentTests}. */
export type RecurrentTest = (typeof recurrentTests)[number];

/** Sentences on the statistics that fail; outputs and gradients have those of the others. */
export const recurrentStatements: Readonly<
  Record<Exclude<RecurrentTest, StructureTest | GradientTest>, Statement>
> = {
  chunk: ({ statistic, threshold }, where, what) =>
    `${what} on ${where} lacks ${formatNumber(statistic)} of what the state before it adds; rounding explains ± ${formatNumber(threshold)}`,
};
