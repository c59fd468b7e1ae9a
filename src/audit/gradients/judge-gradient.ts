import { rowElements, type Problem } from '../../problem/index.js';
import { countLost, nothingLost } from '../element-test.js';
import { profileError, type ErrorProfile } from '../error-profile.js';
import { judgeVectors, type JudgedVectors } from '../judge-quantity.js';
import { isUndefinedRow, type ComparedValues, type GivenQuantity } from '../kernel-outputs.js';
import { WorstStatistics } from '../structure/error-statistic.js';
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
import type { GradientStatistic } from './structure/gradient-statistic.js';
import { outputRoundings } from './structure/output-roundings.js';
import { togetherOf, type RowsTogether } from './structure/mean-errors.js';
import { pairingStatistics } from './structure/pairing.js';

/** Results of the tests of a gradient. */
export interface JudgedGradient extends JudgedVectors<GradientStatistic> {
  /** Whether only some of its rows were judged. */
  readonly isSample: boolean;
  readonly error: ErrorProfile;
  /** `pairing` is with the last of dQ and dK. */
  readonly structure: readonly GradientStatistic[];
  /** The effect of each technique of the kernel on it; null where they are not told apart. */
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

/** Data that gradients are judged by. */
export interface GradientJudgement {
  readonly problem: Problem;
  readonly measured: MeasuredGradients;
  /** The effects of errors of D and of the LSE on sums over keys. */
  readonly together: RowsTogether;
  /**
   * The largest loss of one operation of the kernel to underflow, and the measurement of a kernel without any loss; default:
   * losses are not determined.
   */
  readonly losses?: {
    readonly underflow: number;
    readonly without: () => MeasuredGradients;
  };
  /**
   * The measurement of the kernel's premises with any correct forward, where they keep numbers in a format of a short range: what has
   * no bound there may be infinite or NaN. Default: nothing may.
   */
  readonly overflowing?: (() => MeasuredGradients) | undefined;
  /** Whether only some of the rows or keys are judged. */
  readonly isSample?: boolean;
  /** The rate of all gradients together: half for the spread, half for sums. */
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

/** The measurement of a gradient that is judged. */
export function measuredGradient(
  { gradients }: Pick<MeasuredGradients, 'gradients'>,
  name: JudgedGradientName,
): MeasuredGradient {
  const found = gradients[name];
  if (found === undefined) throw new Error(`${name} is judged, and was not measured`);
  return found;
}

/** A gradient beside that of a correct kernel with this forward: the exact values, and their shift by its own O and LSE. */
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
 * Judges gradients: every element against its worst case, errors against the spread of roundings, sums against the
 * remainders of roundings.
 */
export function judgeGradients(
  given: readonly GivenJudged[],
  judgement: GradientJudgement,
): readonly JudgedGradient[] {
  const { problem, measured, falseAlarmRate, isSample = false, losses, overflowing } = judgement;
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
    const { quantity } = compared;
    const name = quantity.name as JudgedGradientName;
    const { bound } = measuredGradient(measured, name);
    // Numbers have no sums.
    const isSummed = quantity.row === 'vector';
    const worst = new WorstStatistics<GradientStatistic>();
    if (isSummed) for (const sum of gradientStatistics(one, deviations)) worst.add(sum);
    if (one === dk && dq !== undefined && !isSample)
      for (const pair of pairingStatistics(problem, dq, dk, deviations)) worst.add(pair);
    const lost =
      losses === undefined
        ? nothingLost
        : countLost(
            compared.exact.values,
            bound.total,
            losses.underflow,
            () => measuredGradient(losses.without(), name).bound.total,
          );
    return {
      ...judgeVectors(compared, {
        ofElements: bound,
        unit: units.unit,
        falseAlarmRate: falseAlarmRate / 2 / all.length,
        structure: worst.list(),
        lost,
        admitsOverflow: (element) =>
          overflowing !== undefined &&
          measuredGradient(overflowing(), name).bound.total[element] === Infinity,
      }),
      isSample,
      error: profileError(compared),
      techniques: techniques[name] ?? null,
    };
  });
}
