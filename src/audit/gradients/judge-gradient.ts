import { rowElements, type Problem, type Quantity } from '../../problem/index.js';
import type { FormatName } from '../../formats/index.js';
import {
  countLost,
  nothingLost,
  testElements,
  type ElementTest,
  type LostElements,
} from '../element-test.js';
import { profileError, type ErrorProfile } from '../error-profile.js';
import { isUndefinedRow, type ComparedValues, type GivenQuantity } from '../kernel-outputs.js';
import { testSpreads, type SpreadTest } from '../spread-test.js';
import { alarmDeviations } from '../structure/structure-statistic.js';
import type { GradientTechniqueTable } from './bounds/index.js';
import type { GradientQuantityName, JudgedGradientName } from './gradient-quantities.js';
import type { MeasuredGradient, MeasuredGradients } from './measure-gradients.js';
import { gradientUnits } from './row-units.js';
import {
  gradientStatistics,
  statisticCount,
  type SummedGradient,
} from './structure/gradient-structure.js';
import { worstStatistics, type GradientStatistic } from './structure/gradient-statistic.js';
import { outputRoundings } from './structure/output-roundings.js';
import { togetherOf, type RowsTogether } from './structure/mean-errors.js';
import { pairingStatistics } from './structure/pairing.js';

/** What the tests say of a gradient. */
export interface JudgedGradient {
  readonly quantity: Quantity;
  /** How many heads a batch entry of it has. */
  readonly heads: number;
  /** Whether it was judged of some of its rows. */
  readonly isSample: boolean;
  readonly format: FormatName;
  /** As they were judged. Not to be changed. */
  readonly values: Float64Array;
  readonly error: ErrorProfile;
  readonly elements: ElementTest;
  readonly spread: SpreadTest;
  /** The worst of each test and scope; `pairing` is with the last of dQ and dK. */
  readonly structure: readonly GradientStatistic[];
  /** What of it is no larger than what underflow may take. */
  readonly lost: LostElements;
  /** What each technique of the kernel may do to it; null where they are not told apart. */
  readonly techniques: GradientTechniqueTable | null;
}

/** A gradient of Q, K or V that a kernel gave. */
export type GivenGradient = GivenQuantity & {
  readonly quantity: { readonly name: GradientQuantityName };
};

/** Any gradient that a kernel gave. */
export type GivenJudged = GivenQuantity & {
  readonly quantity: { readonly name: JudgedGradientName };
};

/** What gradients are judged by. */
export interface GradientJudgement {
  readonly problem: Problem;
  readonly measured: MeasuredGradients;
  /** What errors of D and of the LSE do to sums over keys. */
  readonly together: RowsTogether;
  /** What one operation of the kernel may lose to underflow, and what is measured of one that loses nothing; default: it is not asked what is lost. */
  readonly losses?: {
    readonly underflow: number;
    readonly without: () => MeasuredGradients;
  };
  /** Whether the rows or the keys are some of them. */
  readonly isSample?: boolean;
  /** Of all gradients together: half for the spread, half for sums. */
  readonly falseAlarmRate: number;
}

/** Rows that hold an exact infinity or NaN. */
function specialRows(exact: Float64Array, columns: number): (row: number) => boolean {
  const special = new Uint8Array(columns === 0 ? 0 : exact.length / columns);
  exact.forEach((x, i) => {
    if (!Number.isFinite(x)) special[Math.floor(i / columns)] = 1;
  });
  return (row) => special[row] === 1;
}

/** What is known of a gradient that is judged. */
export function measuredGradient(
  { gradients }: Pick<MeasuredGradients, 'gradients'>,
  name: JudgedGradientName,
): MeasuredGradient {
  const found = gradients[name];
  if (found === undefined) throw new Error(`${name} is judged, and was not measured`);
  return found;
}

/** A gradient beside what a correct kernel with this forward computes: exact, and what its own O and LSE move it by. */
export function compareGradient(given: GivenJudged, measured: MeasuredGradients): ComparedValues {
  const { reference } = measured;
  const { name } = given.quantity;
  const { exact, bound, shape } = measuredGradient(measured, name);
  const values = exact.values.map((x, i) => x + bound.shift[i]);
  const columns = rowElements(given.quantity, shape);
  const isOfQueries = name === 'dq';
  return {
    ...given,
    exact: { values, magnitude: exact.magnitude },
    shape,
    isSpecialRow: specialRows(exact.values, columns),
    mayBeNaN: (row) => isOfQueries && isUndefinedRow(reference, row),
  };
}

/** A gradient with all that its sums are judged by. */
function summed(
  compared: ComparedValues,
  { measured, together }: GradientJudgement,
): SummedGradient {
  const { shape } = compared;
  const { name, axes } = compared.quantity;
  const [batch, heads] = axes;
  const columns = rowElements(compared.quantity, shape);
  const { bound } = measuredGradient(measured, name as JudgedGradientName);
  return {
    compared,
    errors: { ...bound, roundings: outputRoundings(compared, bound) },
    units: gradientUnits(compared.exact.values, columns),
    means: togetherOf(together, name as JudgedGradientName, shape[batch] * shape[heads], columns),
  };
}

/**
 * Judges gradients: every element against its worst case, errors against what roundings spread by, sums against what
 * roundings leave of them.
 */
export function judgeGradients(
  given: readonly GivenJudged[],
  judgement: GradientJudgement,
): readonly JudgedGradient[] {
  const { problem, measured, falseAlarmRate, isSample = false, losses } = judgement;
  const { shape, techniques } = measured;
  const all = given.map((one) => summed(compareGradient(one, measured), judgement));
  const heads = shape.batch * shape.kvHeads;
  const count = all.reduce((sum, { compared }) => sum + statisticCount(compared), heads);
  const deviations = alarmDeviations(count, falseAlarmRate / 2);
  const named = (name: GradientQuantityName) =>
    all.find(({ compared }) => compared.quantity.name === name);
  const [dq, dk] = [named('dq'), named('dk')];
  return all.map((one) => {
    const { compared, units } = one;
    const { quantity, format, values } = compared;
    const name = quantity.name as JudgedGradientName;
    const { bound } = measuredGradient(measured, name);
    // Numbers, of which nothing is summed.
    const isSummed = quantity.row === 'vector';
    const statistics = isSummed ? [...gradientStatistics(one, deviations)] : [];
    if (one === dk && dq !== undefined && !isSample)
      statistics.push(...pairingStatistics(problem, dq, dk, deviations));
    return {
      quantity,
      heads: compared.shape[quantity.axes[1]],
      isSample,
      format,
      values,
      error: profileError(compared),
      elements: testElements(compared, bound.total),
      spread: testSpreads(
        compared,
        { ofElements: bound, unit: units.unit },
        falseAlarmRate / 2 / all.length,
      ),
      structure: worstStatistics(statistics),
      lost:
        losses === undefined
          ? nothingLost
          : countLost(
              compared.exact.values,
              bound.total,
              losses.underflow,
              () => measuredGradient(losses.without(), name).bound.total,
            ),
      techniques: techniques[name] ?? null,
    };
  });
}
