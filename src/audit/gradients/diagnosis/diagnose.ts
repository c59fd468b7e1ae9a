import { multiplyAddsOf } from '../../rows/index.js';
import type { GradientDiagnosis } from './diagnosis.js';
import { deltaFaults } from './delta-faults.js';
import { factorFaults } from './factor-faults.js';
import type { FailedGradients } from './failed-gradients.js';
import { groupFaults, movedHeadFaults } from './group-faults.js';
import { lseFaults } from './lse-faults.js';
import { explains, type Prediction } from './prediction.js';
import { tileFaults } from './tile-faults.js';

/** Causes that are told from the exact gradients alone. */
const cheapFamilies = [factorFaults, movedHeadFaults];

/** Causes for which exact gradients of a changed problem are computed, those first that are tried soonest. */
const costlyFamilies = [groupFaults, deltaFaults, lseFaults, tileFaults];

/** Multiply-adds of exact gradients from which on nothing of a changed problem is computed: some tens of seconds. */
const mostMultiplyAdds = 1e9;

/** The causes that explain what failed, of the first family that has any. */
function accepted(
  failed: FailedGradients,
  families: readonly ((failed: FailedGradients) => Generator<Prediction>)[],
): readonly Prediction[] {
  for (const family of families) {
    const found: Prediction[] = [];
    for (const prediction of family(failed))
      if (explains(failed, prediction.predicted)) found.push(prediction);
    if (found.length > 0) return found;
  }
  return [];
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
  if (failed.findings.some(({ test }) => test.endsWith('-non-finite')))
    return unexplained(['causes are looked for among finite gradients only']);
  const { problem, measured } = failed;
  if (failed.isSample === true) {
    const [found] = accepted(failed, [factorFaults]);
    const evidence = ['of a sample factors alone are tried: other causes take all rows and keys'];
    return found === undefined
      ? unexplained(evidence)
      : { id: found.id, equivalents: [], sentence: found.sentence, evidence };
  }
  const isSmall = multiplyAddsOf(problem, measured.shape) <= mostMultiplyAdds;
  const families = isSmall ? [...cheapFamilies, ...costlyFamilies] : cheapFamilies;
  const [found, ...others] = accepted(failed, families);
  if (found === undefined)
    return unexplained(
      isSmall
        ? []
        : ['only factors and heads were tried: the problem is too large to compute changed ones'],
    );
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
    ],
  };
}
