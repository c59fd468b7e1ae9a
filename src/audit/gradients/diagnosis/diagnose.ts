import {
  acceptedCauses,
  foundCause,
  unexplainedCause,
  type CauseFamily,
} from '../../conduct/causes.js';
import { multiplyAddsOf, type Place } from '../../rows/index.js';
import type { GradientDiagnosis } from './diagnosis.js';
import { deltaFaults } from './statistics/delta-faults.js';
import { factorFaults } from './stored/factor-faults.js';
import type { FailedGradients } from './failed-gradients.js';
import { groupFaults } from './sums/group-faults.js';
import { leftOverFaults } from './sums/left-over-faults.js';
import { lseFaults } from './statistics/lse-faults.js';
import { maskFaults } from './replayed/mask-faults.js';
import { narrowFaults, narrowSize } from './narrow-sums/narrow-faults.js';
import { overflowFaults } from './stored/overflow-faults.js';
import { explains, type Prediction } from './prediction.js';
import { paddingFaults } from './stored/padding-faults.js';
import { backwardOperands } from './replay/backward-row.js';
import { replayBudget } from './replay/budget.js';
import { replayOrder, type Replayed } from './replay/replay.js';
import { storedStatistics } from './replay/stored-statistics.js';
import { operandFaults } from './replayed/operand-faults.js';
import { visitFaults } from './replayed/visit-faults.js';
import { viewFaults } from './replayed/view-faults.js';
import { scopesOf } from './scope.js';
import { placeShown } from './showing.js';
import { movedFaults } from './stored/moved-faults.js';
import { replayFaults } from './replayed/replayed-fault.js';
import { statisticsFaults } from './statistics/statistics-faults.js';
import { storedFaults } from './stored/stored-faults.js';
import { sinkFaults } from './replayed/sink-faults.js';
import { otherTileFaults, tileFaults } from './sums/tile-faults.js';
import { weightFaults } from './replayed/weight-faults.js';

/** Causes of one kind, for gradients that failed. */
type Family = CauseFamily<Replayed, Prediction>;

/** Causes that the exact gradients alone tell. */
const cheapFamilies: readonly Family[] = [
  ({ failed, scope }) => factorFaults(failed, scope),
  ({ failed }) => movedFaults(failed),
  ({ failed }) => storedFaults(failed),
  ({ failed }) => leftOverFaults(failed),
];

/** Causes that are tried by computing rows again. */
const replayedFamilies: readonly Family[] = [
  deltaFaults,
  (of) => replayFaults(of, lseFaults(of.failed)),
  (of) => replayFaults(of, maskFaults(of.failed.problem, of.failed.measured.shape)),
  (of) => replayFaults(of, weightFaults(of.failed.problem, of.failed.measured.shape)),
  (of) => replayFaults(of, sinkFaults(of.failed)),
  (of) => replayFaults(of, operandFaults(of)),
  (of) => replayFaults(of, visitFaults(of)),
];

/** Causes for which gradients of a changed problem are computed, those first that are tried soonest. */
const costlyFamilies: readonly Family[] = [
  ({ failed }) => groupFaults(failed),
  ...replayedFamilies,
  tileFaults,
  (of) => replayFaults(of, viewFaults(of)),
];

/** Causes that are looked for one kind after the other, each where none before explains what failed. */
const lastFamilies: readonly Family[] = [statisticsFaults, narrowFaults, otherTileFaults];

/** Causes that may hold in some heads, sequences or rows alone. */
const scopedFamilies: readonly Family[] = [
  ({ failed, scope }) => factorFaults(failed, scope),
  ...replayedFamilies,
];

/** Multiply-adds of exact gradients from which on no changed problem is computed: some tens of seconds. */
const mostMultiplyAdds = 1e9;

/** A cause that explains the failed gradients, and its place. */
interface Accepted {
  readonly prediction: Prediction;
  readonly place: Place;
}

/**
 * Causes without a name, given where there is no better one, the one with the fewest numbers first: rows whose D or LSE is off by
 * no rule, a factor without a name.
 */
const nameless: readonly string[] = ['delta-wrong', 'lse-wrong', 'statistics-wrong', 'factor'];

function isNamed({ prediction: { id } }: Accepted): boolean {
  return !nameless.includes(id);
}

/** All causes, those with a name first, in their order. */
function namedFirst(all: readonly Accepted[]): readonly Accepted[] {
  const rank = ({ prediction: { id } }: Accepted) => nameless.indexOf(id);
  return [...all].sort((a, b) => rank(a) - rank(b));
}

/** The causes that explain what failed, of all families: gradients with a factor may also be those of a missing head. */
function accepted(of: Replayed, families: readonly Family[]): readonly Accepted[] {
  return acceptedCauses(families, of, (prediction) => {
    if (!explains(of.failed, prediction)) return null;
    const place = placeShown(of.failed, prediction, of.scope);
    return place && { prediction, place };
  });
}

/** The causes of all that failed: of everything, else of some heads, sequences or rows. */
function causesOf(of: Replayed, isSmall: boolean): readonly Accepted[] {
  let all = accepted(of, isSmall ? [...cheapFamilies, ...costlyFamilies] : cheapFamilies);
  if (isSmall && !all.some(isNamed))
    for (const scope of scopesOf(of.failed)) {
      all = [...accepted({ ...of, scope }, scopedFamilies), ...all];
      if (all.some(isNamed)) break;
    }
  for (const family of isSmall ? lastFamilies : [])
    if (!all.some(isNamed)) all = [...accepted(of, [family]), ...all];
  return namedFirst(all);
}

/** Statements about causes that were not tried, and so may be the cause as well. */
function untried(isSmall: boolean, isSpent: boolean): readonly string[] {
  if (!isSmall)
    return [
      'only factors, heads and how gradients are stored were tried: the problem is too large to compute changed ones',
    ];
  return isSpent ? ['not every cause was tried, which would take too long on this problem'] : [];
}

/** The cause of gradients that hold a NaN or an infinity too many. */
function diagnoseNonFinite(failed: FailedGradients): GradientDiagnosis {
  const [found] = [...overflowFaults(failed), ...paddingFaults(failed)];
  if (found === undefined)
    return unexplainedCause([
      'but for padding and an LSE that overflows, causes are looked for among finite gradients only',
    ]);
  return foundCause(found, [
    'every other gradient that was judged passes all tests',
    ...(found.id === 'padding-nan'
      ? ['sums that begin with what their memory held, a NaN, would look the same']
      : []),
  ]);
}

/** The cause of a sample of gradients that failed. */
function diagnoseSample(failed: FailedGradients): GradientDiagnosis {
  const found = [...factorFaults(failed, null)].find((one) => explains(failed, one));
  const evidence = ['of a sample factors alone are tried: other causes take all rows and keys'];
  if (found === undefined) return unexplainedCause(evidence);
  const { id, sentence } = found;
  return foundCause({ id, sentence }, evidence);
}

/**
 * The cause of gradients that failed: the fault whose exact gradients these are up to rounding, by the audit's own tests.
 * Gradients that no fault explains are unexplained, and so are those that hold a NaN or an infinity too many.
 */
export function diagnoseGradients(failed: FailedGradients): GradientDiagnosis {
  if (failed.findings.some(({ test }) => test.endsWith('-non-finite')))
    return diagnoseNonFinite(failed);
  if (failed.isSample === true) return diagnoseSample(failed);
  const { problem, measured, dout } = failed;
  const multiplyAdds = multiplyAddsOf(problem, measured.shape);
  const isSmall = multiplyAdds <= mostMultiplyAdds;
  const budget = replayBudget(multiplyAdds);
  const of: Replayed = {
    failed,
    operands: backwardOperands(problem, dout),
    budget,
    stored: storedStatistics(failed),
    scope: null,
    order: replayOrder(failed),
  };
  const [found, ...others] = causesOf(of, isSmall);
  if (found === undefined) {
    const near = isSmall ? narrowSize(of) : null;
    return unexplainedCause([
      ...(near === null ? [] : [near]),
      ...untried(isSmall, budget.isSpent()),
    ]);
  }
  const { prediction, place } = found;
  const { id, sentence, declares } = prediction;
  const named = others.filter(isNamed).map((one) => one.prediction);
  const diagnosis = foundCause({ id, sentence, place }, [], named);
  const { equivalents } = diagnosis;
  return {
    ...diagnosis,
    ...(declares !== undefined && { declares }),
    evidence: [
      'against what this fault gives, every gradient that was judged passes all tests',
      ...(equivalents.length === 0
        ? []
        : [`on this problem the same gradients come of ${equivalents.join(', ')}`]),
      ...untried(isSmall, budget.isSpent()),
    ],
  };
}
