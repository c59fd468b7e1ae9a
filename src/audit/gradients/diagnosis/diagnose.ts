import { multiplyAddsOf } from '../../rows/index.js';
import type { GradientDiagnosis } from './diagnosis.js';
import { deltaFaults } from './delta-faults.js';
import { factorFaults } from './factor-faults.js';
import type { FailedGradients } from './failed-gradients.js';
import { groupFaults, movedHeadFaults } from './group-faults.js';
import { leftOverFaults } from './left-over-faults.js';
import { lseFaults } from './lse-faults.js';
import { maskFaults } from './mask-faults.js';
import { narrowFaults, narrowSize } from './narrow-sums/narrow-faults.js';
import { overflowFaults } from './overflow-faults.js';
import { explains, type Prediction } from './prediction.js';
import { paddingFaults } from './padding-faults.js';
import { backwardOperands } from './replay/backward-row.js';
import { replayBudget } from './replay/budget.js';
import type { Replayed } from './replay/replay.js';
import { replayFaults } from './replayed-fault.js';
import { statisticsFaults } from './statistics-faults.js';
import { storedFaults } from './stored-faults.js';
import { sinkFaults } from './sink-faults.js';
import { otherTileFaults, tileFaults } from './tile-faults.js';
import { weightFaults } from './weight-faults.js';

/** Causes of one kind, for gradients that failed. */
type Family = (replayed: Replayed) => Generator<Prediction>;

/** Causes that are told from the exact gradients alone. */
const cheapFamilies: readonly Family[] = [
  ({ failed }) => factorFaults(failed),
  ({ failed }) => movedHeadFaults(failed),
  ({ failed }) => storedFaults(failed),
  ({ failed }) => leftOverFaults(failed),
];

/** Causes for which gradients of a changed problem are computed, those first that are tried soonest. */
const costlyFamilies: readonly Family[] = [
  ({ failed }) => groupFaults(failed),
  deltaFaults,
  ({ failed }) => lseFaults(failed),
  (of) => replayFaults(of, maskFaults(of.failed.problem, of.failed.measured.shape)),
  (of) => replayFaults(of, weightFaults(of.failed.problem, of.failed.measured.shape)),
  (of) => replayFaults(of, sinkFaults(of.failed)),
  tileFaults,
];

/** Causes that are looked for one kind after the other, where none before explains what failed. */
const lastFamilies: readonly Family[] = [statisticsFaults, narrowFaults, otherTileFaults];

/** Multiply-adds of exact gradients from which on nothing of a changed problem is computed: some tens of seconds. */
const mostMultiplyAdds = 1e9;

/**
 * The causes that explain what failed, of all families: gradients that a factor gives may be those of a missing head, too. A
 * factor without a name comes last.
 */
function accepted(of: Replayed, families: readonly Family[]): readonly Prediction[] {
  const found: Prediction[] = [];
  for (const family of families)
    for (const prediction of family(of))
      if (explains(of.failed, prediction)) found.push(prediction);
  const isNamed = ({ id }: Prediction) => id !== 'factor';
  return [...found.filter(isNamed), ...found.filter((one) => !isNamed(one))];
}

/** What was not tried, and so may be the cause as well. */
function untried(isSmall: boolean, isSpent: boolean): readonly string[] {
  if (!isSmall)
    return [
      'only factors, heads and how gradients are stored were tried: the problem is too large to compute changed ones',
    ];
  return isSpent ? ['not every cause was tried, which would take too long on this problem'] : [];
}

/**
 * The cause of gradients that failed: the fault whose exact gradients these are but for rounding, as the audit's own tests
 * say. Gradients that no fault gives are unexplained, and so are those that hold a NaN or an infinity too many.
 */
export function diagnoseGradients(failed: FailedGradients): GradientDiagnosis {
  const unexplained = (evidence: readonly string[]): GradientDiagnosis => ({
    id: 'unexplained',
    equivalents: [],
    sentence: 'the cause is unexplained',
    evidence,
  });
  if (failed.findings.some(({ test }) => test.endsWith('-non-finite'))) {
    const [found] = [...overflowFaults(failed), ...paddingFaults(failed)];
    if (found === undefined)
      return unexplained([
        'but for padding and an LSE that overflows, causes are looked for among finite gradients only',
      ]);
    return {
      id: found.id,
      equivalents: [],
      sentence: found.sentence,
      evidence: [
        'every other gradient that was judged passes all tests',
        ...(found.id === 'padding-nan'
          ? ['sums that begin with what their memory held, a NaN, would look the same']
          : []),
      ],
    };
  }
  const { problem, measured, dout } = failed;
  if (failed.isSample === true) {
    const found = [...factorFaults(failed)].find((one) => explains(failed, one));
    const evidence = ['of a sample factors alone are tried: other causes take all rows and keys'];
    return found === undefined
      ? unexplained(evidence)
      : { id: found.id, equivalents: [], sentence: found.sentence, evidence };
  }
  const multiplyAdds = multiplyAddsOf(problem, measured.shape);
  const isSmall = multiplyAdds <= mostMultiplyAdds;
  const families = isSmall ? [...cheapFamilies, ...costlyFamilies] : cheapFamilies;
  const budget = replayBudget(multiplyAdds);
  const operands = backwardOperands(problem, dout);
  const of: Replayed = { failed, operands, budget };
  let all = accepted(of, families);
  for (const family of isSmall ? lastFamilies : [])
    if (!all.some(({ id }) => id !== 'factor')) all = [...accepted(of, [family]), ...all];
  const [found, ...others] = all;
  if (found === undefined) {
    const near = isSmall ? narrowSize(of) : null;
    return unexplained([...(near === null ? [] : [near]), ...untried(isSmall, budget.isSpent())]);
  }
  const equivalents = [...new Set(others.map(({ id }) => id))].filter(
    (id) => id !== found.id && id !== 'factor',
  );
  return {
    id: found.id,
    equivalents,
    sentence: found.sentence,
    evidence: [
      'against what this fault gives, every gradient that was judged passes all tests',
      ...(equivalents.length === 0
        ? []
        : [`on this problem the same gradients come of ${equivalents.join(', ')}`]),
      ...untried(isSmall, budget.isSpent()),
    ],
  };
}
