import { attentionOracle } from '../../../../oracles/index.js';
import {
  anyGradientPremises,
  measureGradients,
  usualFalseAlarmRate,
  type GradientTensors,
} from '../../../../src/audit/index.js';
import { deltaFaults } from '../../../../src/audit/gradients/diagnosis/statistics/delta-faults.js';
import { lseFaults } from '../../../../src/audit/gradients/diagnosis/statistics/lse-faults.js';
import { statisticsFaults } from '../../../../src/audit/gradients/diagnosis/statistics/statistics-faults.js';
import { explains, type Prediction } from '../../../../src/audit/gradients/diagnosis/prediction.js';
import { backwardOperands } from '../../../../src/audit/gradients/diagnosis/replay/backward-row.js';
import { replayBudget } from '../../../../src/audit/gradients/diagnosis/replay/budget.js';
import {
  replayOrder,
  type Replayed,
} from '../../../../src/audit/gradients/diagnosis/replay/replay.js';
import { storedStatistics } from '../../../../src/audit/gradients/diagnosis/replay/stored-statistics.js';
import { maskFaults } from '../../../../src/audit/gradients/diagnosis/replayed/mask-faults.js';
import { operandFaults } from '../../../../src/audit/gradients/diagnosis/replayed/operand-faults.js';
import { viewFaults } from '../../../../src/audit/gradients/diagnosis/replayed/view-faults.js';
import { replayFaults } from '../../../../src/audit/gradients/diagnosis/replayed/replayed-fault.js';
import { sinkFaults } from '../../../../src/audit/gradients/diagnosis/replayed/sink-faults.js';
import { weightFaults } from '../../../../src/audit/gradients/diagnosis/replayed/weight-faults.js';
import { placeShown } from '../../../../src/audit/gradients/diagnosis/showing.js';
import { factorFaults } from '../../../../src/audit/gradients/diagnosis/stored/factor-faults.js';
import { movedFaults } from '../../../../src/audit/gradients/diagnosis/stored/moved-faults.js';
import { storedFaults } from '../../../../src/audit/gradients/diagnosis/stored/stored-faults.js';
import { groupFaults } from '../../../../src/audit/gradients/diagnosis/sums/group-faults.js';
import { storedForward } from '../../../../src/audit/gradients/plan-gradients.js';
import { givenGradients, isOfTensors } from '../../../../src/audit/gradients/given-gradients.js';
import { gradientFindings } from '../../../../src/audit/gradients/gradient-findings.js';
import { judgeGradients } from '../../../../src/audit/gradients/judge-gradient.js';
import {
  measureMeanErrors,
  measureWeightErrors,
} from '../../../../src/audit/gradients/structure/mean-errors.js';
import { decodeTensor } from '../../../../src/formats/index.js';
import type { Place } from '../../../../src/audit/rows/index.js';
import type { Problem } from '../../../../src/problem/index.js';

type Family = (of: Replayed) => Iterable<Prediction>;

/** The families of causes. */
export const familiesOf = {
  factor: ({ failed }) => factorFaults(failed, null),
  moved: ({ failed }) => movedFaults(failed),
  stored: ({ failed }) => storedFaults(failed),
  group: ({ failed }) => groupFaults(failed),
  delta: deltaFaults,
  lse: (of) => replayFaults(of, lseFaults(of.failed)),
  mask: (of) => replayFaults(of, maskFaults(of.failed.problem, of.failed.measured.shape)),
  weight: (of) => replayFaults(of, weightFaults(of.failed.problem, of.failed.measured.shape)),
  sink: (of) => replayFaults(of, sinkFaults(of.failed)),
  operand: (of) => replayFaults(of, operandFaults(of)),
  view: (of) => replayFaults(of, viewFaults(of)),
  statistics: statisticsFaults,
} as const satisfies Readonly<Record<string, Family>>;

/** A failed audit's gradients, as causes are looked for; null where they pass. */
export function replayedOf(problem: Problem, tensors: GradientTensors): Replayed | null {
  const { dout } = tensors;
  const given = givenGradients(problem, tensors).filter(isOfTensors);
  const premises = anyGradientPremises(problem, given[0].format);
  const forward = storedForward(problem, tensors);
  const reference = attentionOracle(problem);
  const measured = measureGradients(problem, dout, { premises, given: forward, reference });
  const values = decodeTensor(dout);
  const judgement = {
    problem,
    measured,
    together: {
      dk: measureMeanErrors(problem, values, measured, premises),
      dv: measureWeightErrors(problem, values, measured),
    },
    falseAlarmRate: usualFalseAlarmRate,
  };
  const findings = gradientFindings(judgeGradients(given, judgement), 'any correct kernel');
  if (findings.length === 0) return null;
  const failed = { ...judgement, dout, given, findings, forward, premises };
  return {
    failed,
    operands: backwardOperands(problem, dout),
    budget: replayBudget(1),
    stored: storedStatistics(failed),
    scope: null,
    order: replayOrder(failed),
  };
}

/** The causes of a family that explain what failed, and where. */
export function acceptedOf(of: Replayed, family: Family): { id: string; place: Place }[] {
  const found: { id: string; place: Place }[] = [];
  for (const prediction of family(of)) {
    if (!explains(of.failed, prediction)) continue;
    const place = placeShown(of.failed, prediction, of.scope);
    if (place !== null) found.push({ id: prediction.id, place });
  }
  return found;
}
