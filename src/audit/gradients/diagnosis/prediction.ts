import { rowElements } from '../../../problem/index.js';
import type { Place } from '../../rows/index.js';
import { testElements } from '../../element-test.js';
import type { ComparedValues } from '../../kernel-outputs.js';
import { testSpreads } from '../../spread-test.js';
import { alarmDeviations } from '../../structure/structure-statistic.js';
import type { ByGradient } from '../gradient-quantities.js';
import {
  compareGradient,
  measuredGradient,
  type GivenGradient,
  type GivenJudged,
  type GradientJudgement,
} from '../judge-gradient.js';
import type { GradientDeclaration } from '../premises/gradient-declaration.js';
import { gradientUnits } from '../row-units.js';
import { isBeyond } from '../../structure/error-statistic.js';
import { gradientStatistics, statisticCount } from '../structure/gradient-structure.js';
import { noRoundings } from '../structure/output-roundings.js';
import { togetherOf } from '../structure/mean-errors.js';
import type { FailedGradients } from './failed-gradients.js';
import { boundOfPrediction, type PredictedBound, type PredictedRows } from './predicted-bound.js';

/** Exact gradients of a kernel with some fault; those that are left out are right. */
export type PredictedGradients = Partial<ByGradient<Float64Array>>;

/** The additional width of the bounds of a prediction: at worst, and the deviation of its independent part. */
export interface WiderBound {
  readonly total: Float64Array;
  readonly deviation: Float64Array;
}

/** A cause, and the gradients that it gives. */
export interface Prediction {
  readonly id: string;
  /** The cause in words, without a full stop. */
  readonly sentence: string;
  /** The premise of a correct kernel that does the same; left out where none does. */
  readonly declares?: GradientDeclaration;
  /** The place of the cause; default wherever it changes what is given, of the rows that it touches. */
  readonly place?: Place;
  /** The rows of queries that it touches, 1 each, where these are not all rows of a head. */
  readonly rows?: Uint8Array;
  readonly predicted: PredictedGradients;
  /** The sizes that elements are sums of, where they are known. */
  readonly sizes?: PredictedGradients;
  /** Whether roundings shrink with the rows of a gradient, as where all is multiplied; default they do not. */
  readonly shrinks?: boolean;
  /** Whether the prediction contains the shift by the stored forward already; default it does not. */
  readonly isShifted?: boolean;
  /** The prediction without the fault, where that is not exact but by the stored forward. */
  readonly without?: () => PredictedGradients;
  /** The exact element that each predicted element is, where gradients are right but in another place: they keep its bounds. */
  readonly sources?: Partial<ByGradient<Int32Array>>;
  /** Roundings of the fault itself, beyond the predicted values; default none. */
  readonly wider?: Partial<ByGradient<WiderBound>>;
}

/**
 * The smallest factor that the bounds of a row that shrinks are multiplied by: a row that is predicted to vanish is still
 * rounded.
 */
const leastFactor = 2 ** -10;

/** The prediction of one gradient; null for sizes that are not known. */
interface PredictedGradient {
  readonly predicted: Float64Array;
  readonly sizes: Float64Array | null;
  readonly wider?: WiderBound | undefined;
  readonly isShifted?: boolean;
  readonly sources?: Int32Array | undefined;
}

/** Bounds of elements that are copies of others. */
function boundOfSources(
  bound: FailedGradients['measured']['gradients']['dq']['bound'],
  sources: Int32Array,
): PredictedBound {
  const from = (values: Float64Array) => Float64Array.from(sources, (at) => values[at]);
  const { total, systematic, known, deviation } = bound;
  return {
    total: from(total),
    systematic: from(systematic),
    known: from(known),
    deviation: from(deviation),
  };
}

/** The rows that the bounds of a prediction are made from. */
function predictedRows(
  { quantity, format }: Pick<GivenJudged, 'quantity' | 'format'>,
  { predicted, sizes }: PredictedGradient,
  measured: FailedGradients['measured'],
): PredictedRows {
  const { exact, bound, shape } = measuredGradient(measured, quantity.name);
  return {
    exact: exact.values,
    predicted,
    bound,
    format,
    columns: rowElements(quantity, shape),
    sizes: sizes && [exact.magnitude, sizes],
  };
}

/** Whether some rows of a given gradient, from and to an element, are within the worst case of predicted ones. */
export function isWithinBounds(
  { measured }: Pick<FailedGradients, 'measured'>,
  given: GivenGradient,
  prediction: PredictedGradient,
  [first, end]: readonly [first: number, end: number],
): boolean {
  const { values, quantity } = given;
  const { predicted, isShifted = false } = prediction;
  const { exact, bound } = measured.gradients[quantity.name];
  const { total } = boundOfPrediction(predictedRows(given, prediction, measured), 1, [first, end]);
  for (let i = first; i < end; i++) {
    if (!Number.isFinite(exact.values[i])) continue;
    const moved = isShifted ? 0 : bound.shift[i];
    if (!(Math.abs(values[i] - predicted[i] - moved) <= total[i - first])) return false;
  }
  return true;
}

/**
 * Whether a given gradient passes all tests of a predicted one.
 * @param least the smallest factor of the bounds; by default they shrink with the rows
 */
export function isAsPredicted(
  given: GivenJudged,
  prediction: PredictedGradient,
  { measured, together, falseAlarmRate }: GradientJudgement,
  least = leastFactor,
): boolean {
  const usual = compareGradient(given, measured);
  const { predicted, isShifted = false, sources } = prediction;
  const { bound } = measuredGradient(measured, given.quantity.name);
  const moved = (x: number, i: number) =>
    isShifted ? x : x + bound.shift[sources === undefined ? i : sources[i]];
  const compared: ComparedValues = {
    ...usual,
    exact: { ...usual.exact, values: predicted.map(moved) },
  };
  const { quantity, shape } = usual;
  const columns = rowElements(quantity, shape);
  const scaled =
    sources === undefined
      ? boundOfPrediction(predictedRows(given, prediction, measured), least)
      : boundOfSources(bound, sources);
  prediction.wider?.total.forEach((x, i) => (scaled.total[i] += x));
  prediction.wider?.deviation.forEach((x, i) => {
    scaled.deviation[i] = Math.hypot(scaled.deviation[i], x);
  });
  const { outside, nonFinite } = testElements(compared, scaled.total);
  if (outside + nonFinite > 0) return false;
  const units = gradientUnits(predicted, columns);
  const spread = testSpreads(compared, { ofElements: scaled, unit: units.unit }, falseAlarmRate);
  if (spread.outside > 0 || spread.results.some(({ measured: found, limit }) => found > limit))
    return false;
  if (quantity.row === 'number') return true;
  const [batch, heads] = quantity.axes;
  const { name } = given.quantity;
  const means = togetherOf(together, name, shape[batch] * shape[heads], columns);
  const deviations = alarmDeviations(statisticCount(compared), falseAlarmRate);
  const summed = {
    compared,
    errors: {
      ...scaled,
      operands: new Float64Array(predicted.length),
      apart: null,
      roundings: noRoundings(scaled.deviation),
    },
    units,
    means,
  };
  for (const statistic of gradientStatistics(summed, deviations))
    if (isBeyond(statistic)) return false;
  return true;
}

/** Whether a gradient failed. */
export function fails({ findings }: FailedGradients, { quantity }: GivenGradient): boolean {
  return findings.some((finding) => finding.quantity === quantity.name);
}

/**
 * Whether a cause explains all failed gradients, and no others: every given gradient passes the audit's tests against the
 * prediction.
 */
export function explains(
  failed: FailedGradients,
  {
    predicted,
    sizes,
    shrinks = false,
    wider,
    isShifted = false,
    sources,
  }: Omit<Prediction, 'id' | 'sentence'>,
): boolean {
  const { given } = failed;
  const isLeft = given.some(
    (one) => fails(failed, one) && predicted[one.quantity.name] === undefined,
  );
  if (isLeft) return false;
  return given.every((one) => {
    const values = predicted[one.quantity.name];
    if (values === undefined) return true;
    const { name } = one.quantity;
    const ofOne = {
      predicted: values,
      sizes: sizes?.[name] ?? null,
      wider: wider?.[name],
      isShifted,
      sources: sources?.[name],
    };
    return isAsPredicted(one, ofOne, failed, shrinks ? leastFactor : 1);
  });
}
