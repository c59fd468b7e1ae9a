import { formatNumber } from '../../words/index.js';
import type { GradientTest } from '../gradients/structure/gradient-statistic.js';
import type { Statement } from '../structure/error-statistic.js';
import type { StructureTest } from '../structure/structure-result.js';

/**
 * Statistics of a recurrence that roundings leave near zero: `scale` is the slope of a quantity on the exact one, less one; `bias` its
 * mean error; `chunk` the part that is missing of what the state before a chunk of tokens adds to their outputs.
 */
export const recurrentTests = ['scale', 'bias', 'chunk'] as const;
/** A statistic of a recurrence: `scale`, `bias` or `chunk`. */
export type RecurrentTest = (typeof recurrentTests)[number];

/** Sentences on the statistics that fail; outputs and gradients have those of the others. */
export const recurrentStatements: Readonly<
  Record<Exclude<RecurrentTest, StructureTest | GradientTest>, Statement>
> = {
  chunk: ({ statistic, threshold }, where, what) =>
    `${what} on ${where} has ${formatNumber(1 + statistic)} of what the state before it adds; rounding explains 1 ± ${formatNumber(threshold)}`,
};
