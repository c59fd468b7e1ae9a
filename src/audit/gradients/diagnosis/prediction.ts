import { rowElements } from '../../../problem/index.js';
import { testElements } from '../../element-test.js';
import type { ComparedValues } from '../../kernel-outputs.js';
import { testSpreads } from '../../spread-test.js';
import { alarmDeviations } from '../../structure/structure-statistic.js';
import type { GradientBound } from '../bounds/index.js';
import type { ByGradient } from '../gradient-quantities.js';
import {
  compareGradient,
  measuredGradient,
  type GivenGradient,
  type GivenJudged,
  type GradientJudgement,
} from '../judge-gradient.js';
import { gradientUnits } from '../row-units.js';
import { isBeyond } from '../structure/gradient-statistic.js';
import { gradientStatistics, statisticCount } from '../structure/gradient-structure.js';
import { noMeanErrors } from '../structure/mean-errors.js';
import type { FailedGradients } from './failed-gradients.js';

/** Exact gradients of a kernel with some fault; those that are left out are as they should be. */
export type PredictedGradients = Partial<ByGradient<Float64Array>>;

/** A cause, and the gradients that it gives. */
export interface Prediction {
  readonly id: string;
  /** The cause in words, without a full stop. */
  readonly sentence: string;
  readonly predicted: PredictedGradients;
}

/** The smallest factor that the bounds of a row are multiplied by: what is predicted to vanish is still rounded. */
const leastFactor = 2 ** -10;

/** Length of a row of numbers. */
function lengthOf(values: Float64Array, first: number, end: number): number {
  let squares = 0;
  for (let i = first; i < end; i++) squares += values[i] ** 2;
  return Math.sqrt(squares);
}

/** Bounds for a predicted gradient: roundings of a row grow and shrink as the row does. */
function scaledBound(
  { total, systematic, known, deviation }: GradientBound,
  exact: Float64Array,
  predicted: Float64Array,
  columns: number,
) {
  const factors = Float64Array.from({ length: exact.length / Math.max(columns, 1) }, (_, row) => {
    const [first, end] = [row * columns, (row + 1) * columns];
    const ratio = lengthOf(predicted, first, end) / lengthOf(exact, first, end);
    return Number.isFinite(ratio) ? Math.max(ratio, leastFactor) : 1;
  });
  const scaled = (of: Float64Array) => of.map((x, i) => x * factors[Math.floor(i / columns)]);
  return {
    total: scaled(total),
    systematic: scaled(systematic),
    known: scaled(known),
    deviation: scaled(deviation),
  };
}

/** Whether a given gradient passes all tests of a predicted one. */
export function isAsPredicted(
  given: GivenJudged,
  predicted: Float64Array,
  { measured, meanErrors, falseAlarmRate }: GradientJudgement,
): boolean {
  const usual = compareGradient(given, measured);
  const { exact, bound } = measuredGradient(measured, given.quantity.name);
  const compared: ComparedValues = {
    ...usual,
    exact: { ...usual.exact, values: predicted.map((x, i) => x + bound.shift[i]) },
  };
  const { quantity, shape } = usual;
  const columns = rowElements(quantity, shape);
  const scaled = scaledBound(bound, exact.values, predicted, columns);
  const { outside, nonFinite } = testElements(compared, scaled.total);
  if (outside + nonFinite > 0) return false;
  const units = gradientUnits(predicted, columns);
  const spread = testSpreads(compared, { ofElements: scaled, unit: units.unit }, falseAlarmRate);
  if (spread.outside > 0 || spread.results.some(({ measured: found, limit }) => found > limit))
    return false;
  if (quantity.row === 'number') return true;
  const [batch, heads] = quantity.axes;
  const means =
    quantity.name === 'dk' ? meanErrors : noMeanErrors(shape[batch] * shape[heads], columns);
  const deviations = alarmDeviations(statisticCount(compared), falseAlarmRate);
  const summed = { compared, bound: scaled, units, means };
  for (const statistic of gradientStatistics(summed, deviations))
    if (isBeyond(statistic)) return false;
  return true;
}

/** Whether a gradient failed. */
export function fails({ findings }: FailedGradients, { quantity }: GivenGradient): boolean {
  return findings.some((finding) => finding.quantity === quantity.name);
}

/**
 * Whether a cause explains all that failed, and nothing that did not: every given gradient passes the audit's tests against
 * what the cause predicts.
 */
export function explains(failed: FailedGradients, predicted: PredictedGradients): boolean {
  const { given } = failed;
  const isLeft = given.some(
    (one) => fails(failed, one) && predicted[one.quantity.name] === undefined,
  );
  if (isLeft) return false;
  return given.every((one) => {
    const values = predicted[one.quantity.name];
    return values === undefined || isAsPredicted(one, values, failed);
  });
}
