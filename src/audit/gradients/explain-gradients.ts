import { diagnoseGradients } from './diagnosis/diagnose.js';
import type { GradientDiagnosis } from './diagnosis/diagnosis.js';
import type { FailedGradients } from './diagnosis/failed-gradients.js';
import { diagnoseShared } from './diagnosis/shared-faults.js';
import { isOfTensors } from './given-gradients.js';
import { judgedGradients } from './gradient-quantities.js';
import { listed } from './gradient-verdict.js';
import type { GivenJudged } from './judge-gradient.js';

/**
 * The cause of what failed of dQ, dK and dV; where they pass, what is known of the others.
 */
export function explainGradients({
  given,
  findings,
  ...judgement
}: Omit<FailedGradients, 'given'> & { readonly given: readonly GivenJudged[] }): GradientDiagnosis {
  const ofTensors = given.filter(isOfTensors);
  const names = new Set<string>(ofTensors.map(({ quantity }) => quantity.name));
  const failing = findings.filter(({ quantity }) => names.has(quantity));
  if (failing.length === 0) return diagnoseShared(given, findings, judgement);
  const found = diagnoseGradients({ ...judgement, given: ofTensors, findings: failing });
  const others = new Set(
    findings.filter(({ quantity }) => !names.has(quantity)).map(({ quantity }) => quantity),
  );
  if (others.size === 0 || found.id === 'unexplained') return found;
  const left = judgedGradients.filter(({ name }) => others.has(name)).map(({ prose }) => prose);
  const clause = `${listed(left)} ${left.length === 1 ? 'fails' : 'fail'} too, and whether by this is not tried`;
  return { ...found, evidence: [...found.evidence, clause] };
}
