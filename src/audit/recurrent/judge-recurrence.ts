import { nothingLost, testElements } from '../element-test.js';
import { placeOf, type ComparedValues, type GivenQuantity } from '../kernel-outputs.js';
import type { JudgedVectors } from '../judge-quantity.js';
import type { SpreadResult, SpreadTest } from '../spread-test.js';
import { WorstStatistics, type ErrorStatistic } from '../structure/error-statistic.js';
import {
  project,
  rangeOf,
  type DrawnErrors,
  type DrawnQuantity,
  type RowGroup,
} from './draw-errors.js';
import { drawnLimit } from './drawn-limit.js';
import type { RecurrentTest } from './recurrent-statistic.js';

/** A judged quantity of a recurrence. */
export type JudgedRecurrence = JudgedVectors<ErrorStatistic<RecurrentTest>>;

/** What a quantity of a recurrence is judged by. */
export interface RecurrenceMeasure {
  readonly drawnOf: DrawnQuantity;
  /** The radius of the exact values. */
  readonly radius: Float64Array;
  /** The worst case of a correct kernel, radius and output rounding included. */
  readonly total: Float64Array;
  /** Draws for each arithmetic that the kernel may have. */
  readonly draws: readonly { readonly count: number; readonly errors: DrawnErrors }[];
  /** The probability that its statistical tests fail a correct kernel. */
  readonly falseAlarmRate: number;
}

/**
 * tr Σ / ‖Σ‖ at least, Σ the covariance of a group's errors: tr Σ / √(tr Σ²), as the variance of their sum of squares is 2 tr Σ². Half of what few
 * draws show counts.
 */
function freedomOf(energies: Float64Array): number {
  const mean = meanOf(energies);
  const variance = energies.reduce((sum, x) => sum + (x - mean) ** 2, 0) / energies.length;
  return variance > 0 ? Math.max(1, Math.sqrt((mean * mean) / variance)) : 1;
}

function meanOf(values: Float64Array): number {
  return values.reduce((sum, x) => sum + x, 0) / Math.max(1, values.length);
}

/** Errors, 0 where one of them is not finite: another test tells of these. */
function finiteErrors(values: Float64Array, exact: Float64Array): Float64Array {
  return values.map((x, i) => (Number.isFinite(x - exact[i]) ? x - exact[i] : 0));
}

/** The elements' errors against what draws let expect of each. */
function testDrawnElements(
  { quantity, shape }: ComparedValues,
  errors: Float64Array,
  { radius, total, draws, falseAlarmRate }: RecurrenceMeasure,
): Pick<SpreadTest, 'outside' | 'worstRatio' | 'worst'> {
  const probability = falseAlarmRate / 4 / Math.max(errors.length, 1);
  const factors = draws.map(({ count }) => drawnLimit(probability, count));
  const limitOf = (i: number) => {
    let limit = 0;
    draws.forEach(({ errors: drawn }, at) => {
      limit = Math.max(limit, factors[at] * Math.sqrt(drawn.squares[i]) + drawn.alike.elements[i]);
    });
    return Math.min(total[i], radius[i] + limit);
  };
  let [outside, worstRatio, worst] = [0, 0, -1];
  for (let i = 0; i < errors.length; i++) {
    const error = Math.abs(errors[i]);
    const ratio = error === 0 ? 0 : error / limitOf(i);
    if (ratio > 1) outside++;
    if (ratio > worstRatio) [worstRatio, worst] = [ratio, i];
  }
  const at =
    worst < 0
      ? null
      : {
          at: placeOf(quantity, shape, worst),
          error: Math.abs(errors[worst]),
          bound: limitOf(worst),
        };
  return { outside, worstRatio, worst: at };
}

/** Each group's root mean square error against what draws let expect: the worst of each scope. */
function testGroups(
  errors: Float64Array,
  { drawnOf: { rows, groups }, radius, draws, falseAlarmRate }: RecurrenceMeasure,
): SpreadResult[] {
  const probability = falseAlarmRate / 4 / Math.max(groups.length, 1);
  const worst = new Map<RowGroup['scope'], SpreadResult>();
  const use = ({ measured, limit }: SpreadResult) => (measured === 0 ? 0 : measured / limit);
  groups.forEach((group, at) => {
    const [first, end] = rangeOf(group, rows);
    if (first === end) return;
    const elements = end - first;
    let [measured, known] = [0, 0];
    for (let i = first; i < end; i++) {
      measured += errors[i] * errors[i];
      known += radius[i] * radius[i];
    }
    let [limit, expected] = [0, 0];
    for (const { count, errors: drawn } of draws) {
      const energies = drawn.energies[at];
      const mean = meanOf(energies);
      expected = Math.max(expected, mean);
      const factor = drawnLimit(probability, count, freedomOf(energies));
      limit = Math.max(limit, factor * Math.sqrt(mean) + drawn.alike.groups[at]);
    }
    const result = {
      ...group,
      lastRow: group.firstRow + group.rows - 1,
      measured: Math.sqrt(measured / elements),
      expected: Math.sqrt(expected / elements),
      limit: (limit + Math.sqrt(known)) / Math.sqrt(elements),
    };
    const before = worst.get(group.scope);
    if (before === undefined || use(result) > use(before)) worst.set(group.scope, result);
  });
  return [...worst.values()];
}

/** Each statistic against what draws let expect: the worst of each test and scope. */
function testProjections(
  errors: Float64Array,
  { drawnOf: { rows, projections }, radius, draws, falseAlarmRate }: RecurrenceMeasure,
): readonly ErrorStatistic<RecurrentTest>[] {
  const probability = falseAlarmRate / 2 / Math.max(projections.length, 1);
  const worst = new WorstStatistics<ErrorStatistic<RecurrentTest>>();
  projections.forEach((projection, at) => {
    const { test, group, direction } = projection;
    const [first, end] = rangeOf(group, rows);
    let [known, square] = [0, 0];
    for (let i = first; i < end; i++) {
      known += Math.abs(direction[i]) * radius[i];
      square += direction[i] * direction[i];
    }
    if (square === 0) return;
    let threshold = 0;
    for (const { count, errors: drawn } of draws) {
      const values = drawn.projections[at];
      const mean = values.reduce((sum, x) => sum + x * x, 0) / count;
      const ofDraws = drawnLimit(probability, count) * Math.sqrt(mean);
      threshold = Math.max(threshold, ofDraws + drawn.alike.projections[at]);
    }
    worst.add({
      test,
      ...group,
      lastRow: group.firstRow + group.rows - 1,
      statistic: project(errors, projection, rows),
      threshold: threshold + known / square,
    });
  });
  return worst.list();
}

/** Judges one quantity: its elements one by one, how their errors spread, and what they have in common. */
export function judgeRecurrence(
  given: GivenQuantity,
  measure: RecurrenceMeasure,
): JudgedRecurrence {
  const { drawnOf, total, radius, draws } = measure;
  const { exact, rows } = drawnOf;
  const compared: ComparedValues = {
    ...given,
    exact: { values: exact, magnitude: null },
    shape: rows.shape,
    isSpecialRow: () => false,
    mayBeNaN: () => false,
  };
  // Nothing is known where the oracle overflowed, and one such element would hide all others of its group.
  const errors = finiteErrors(given.values, exact).map((x, i) => (radius[i] < Infinity ? x : 0));
  const finite = { ...measure, radius: radius.map((x) => (x < Infinity ? x : 0)) };
  const expected = Math.max(0, ...draws.map(({ errors: { squares } }) => meanOf(squares)));
  return {
    row: 'vector',
    quantity: given.quantity,
    heads: rows.shape.heads,
    format: given.format,
    values: given.values,
    structure: testProjections(errors, finite),
    lost: nothingLost,
    elements: testElements(compared, total),
    spread: {
      ...testDrawnElements(compared, errors, finite),
      measured: Math.sqrt(meanOf(errors.map((x) => x * x))),
      expected: Math.sqrt(expected),
      results: testGroups(errors, finite),
    },
  };
}
