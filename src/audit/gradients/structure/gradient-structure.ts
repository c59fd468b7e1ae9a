import { rowElements } from '../../../problem/index.js';
import type { ComparedValues } from '../../kernel-outputs.js';
import { structureTileRows } from '../../structure/structure-statistic.js';
import type { GradientUnits } from '../row-units.js';
import { ErrorSum, type SummedErrors } from './error-sum.js';
import type { GradientStatistic } from './gradient-statistic.js';
import type { MeanErrors } from './mean-errors.js';

/** A gradient whose errors are to be summed up. */
export interface SummedGradient {
  readonly compared: ComparedValues;
  readonly errors: SummedErrors;
  readonly units: GradientUnits;
  readonly means: MeanErrors;
}

/** The rows that a statistic is made of. */
type StatisticPlace = Pick<GradientStatistic, 'head' | 'firstRow' | 'rows' | 'lastRow'>;

/** Number of statistics that `gradientStatistics` makes of a gradient. */
export function statisticCount({ quantity, shape }: ComparedValues): number {
  if (quantity.row === 'number') return 0;
  const [batch, heads, rows] = quantity.axes;
  const ofHead = Math.ceil(shape[rows] / structureTileRows) + 1 + rowElements(quantity, shape);
  return shape[batch] * shape[heads] * ofHead;
}

/** The rows that a row may err alike with; null where it shares its errors with no other. */
export function unitOf({ units }: Pick<SummedGradient, 'units'>, row: number): number | null {
  return units.isShared[row] === 1 ? units.unit[row] : null;
}

/** Whether statistics can be made of a row: its errors and their bounds are numbers. */
function isSummable(
  { values, exact, isSpecialRow }: ComparedValues,
  { systematic, deviation }: SummedErrors,
  row: number,
  columns: number,
): boolean {
  if (isSpecialRow(row)) return false;
  let sum = 0;
  for (let i = row * columns; i < (row + 1) * columns; i++)
    sum += Math.abs(values[i] - exact.values[i]) + systematic[i] + deviation[i];
  return Number.isFinite(sum);
}

/** Least errors that an element counts with, beside its value and beside the largest errors: weights are finite numbers. */
const leastOfValue = 2 ** -60;
const leastOfLargest = 2 ** -200;

/**
 * Makes a function that gives the weight of element `at` of value x in a slope: if elements err apart, x over the square of its
 * errors, which sees the smallest factor, in units of the largest errors; x itself if a row errs together.
 */
function slopeWeights({
  apart,
  deviation,
  systematic,
}: SummedErrors): (at: number, x: number) => number {
  if (apart === null) return (_, x) => x;
  const errorsOf = (at: number) => Math.hypot(deviation[at], systematic[at]);
  let largest = 0;
  for (let at = 0; at < deviation.length; at++) {
    const errors = errorsOf(at);
    if (errors > largest && errors < Infinity) largest = errors;
  }
  return (at, x) => {
    const errors = errorsOf(at);
    if (x === 0 || errors === 0) return 0;
    const least = Math.max(leastOfValue * Math.abs(x), leastOfLargest * largest);
    const share = Math.max(errors, least) / largest;
    return x / largest / share / share;
  };
}

/** The sums of each column of a head, whose rows may err together with others. */
function columnStatistics(
  of: SummedGradient,
  place: StatisticPlace,
  rowsOfHead: readonly number[],
  deviations: number,
): GradientStatistic[] {
  const { compared, means } = of;
  const { values, exact } = compared;
  const columns = rowElements(compared.quantity, compared.shape);
  const sums = Array.from({ length: columns }, () => new ErrorSum(of.errors));
  for (const row of rowsOfHead) {
    const unit = unitOf(of, row);
    for (let column = 0, at = row * columns; column < columns; column++, at++) {
      const sum = sums[column];
      sum.add(at, values[at] - exact.values[at], 1);
      sum.endRow(unit);
    }
  }
  return sums.map((sum, column) => {
    const judged = sum.judge(deviations, means.columns[place.head * columns + column]);
    return { test: 'sum', scope: 'head', ...place, column, ...judged };
  });
}

/**
 * The slope of every tile of 128 rows and of every head on the exact gradient, and the sum of every column over a head, each
 * against the threshold that roundings explain. Rows with infinities or NaNs are left out; patterns of zeros are no test.
 * @param deviations standard deviations that a statistic of a correct kernel stays within
 */
export function* gradientStatistics(
  of: SummedGradient,
  deviations: number,
): Generator<GradientStatistic> {
  const { compared, errors, means } = of;
  const { quantity, shape, values, exact } = compared;
  const [batch, heads, rowAxis] = quantity.axes;
  const columns = rowElements(quantity, shape);
  const rows = shape[rowAxis];
  const weightOf = slopeWeights(errors);

  /** Adds a row projected on its exact values; returns the length of those. */
  const addRow = (row: number, sums: readonly ErrorSum[]): number => {
    let norm = 0;
    for (let i = row * columns; i < (row + 1) * columns; i++) {
      const x = exact.values[i];
      const pattern = weightOf(i, x);
      norm += x * x;
      for (const sum of sums) sum.add(i, (values[i] - x) * pattern, pattern, x);
    }
    for (const sum of sums) sum.endRow(unitOf(of, row));
    return Math.sqrt(norm);
  };
  const slope = (
    sum: ErrorSum,
    scope: GradientStatistic['scope'],
    place: StatisticPlace,
    common: number,
  ): GradientStatistic[] => {
    if (!(sum.norm > 0 && sum.norm < Infinity)) return [];
    const { statistic, threshold } = sum.judge(deviations, common);
    return [
      {
        test: 'scale',
        scope,
        ...place,
        column: null,
        statistic: statistic / sum.norm,
        threshold: threshold / sum.norm,
      },
    ];
  };

  for (let head = 0; head < shape[batch] * shape[heads]; head++) {
    const ofHead = new ErrorSum(errors);
    const summable: number[] = [];
    let longestOfHead = 0;
    for (let first = 0; first < rows; first += structureTileRows) {
      const ofTile = new ErrorSum(errors);
      const count = Math.min(structureTileRows, rows - first);
      let longest = 0;
      for (let row = head * rows + first; row < head * rows + first + count; row++) {
        if (!isSummable(compared, errors, row, columns)) continue;
        summable.push(row);
        longest = Math.max(longest, addRow(row, [ofTile, ofHead]));
      }
      longestOfHead = Math.max(longestOfHead, longest);
      yield* slope(
        ofTile,
        'tile',
        { head, firstRow: first, rows: count, lastRow: first + count - 1 },
        longest * means.norm[head],
      );
    }
    const place = { head, firstRow: 0, rows, lastRow: rows - 1 };
    yield* slope(ofHead, 'head', place, means.slope?.[head] ?? longestOfHead * means.norm[head]);
    if (summable.length === 0) continue;
    yield* columnStatistics(of, place, summable, deviations);
  }
}
