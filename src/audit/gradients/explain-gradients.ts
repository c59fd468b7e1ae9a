import { formatNumber, listed } from '../../words/index.js';
import { foundCause } from '../conduct/causes.js';
import { deltaFormats } from './bounds/index.js';
import { diagnoseGradients } from './diagnosis/diagnose.js';
import type { GradientDiagnosis } from './diagnosis/diagnosis.js';
import type { FailedGradients } from './diagnosis/failed-gradients.js';
import { diagnoseShared } from './diagnosis/shared-faults.js';
import { isOfTensors } from './given-gradients.js';
import { judgedGradients } from './gradient-quantities.js';
import type { GivenJudged } from './judge-gradient.js';
import type { GradientDeclaration } from './premises/gradient-declaration.js';

/** Gradients to be explained. */
export interface Unexplained extends Omit<FailedGradients, 'given'> {
  readonly given: readonly GivenJudged[];
  /**
   * The largest share of a bound that is used once a premise is declared, null where the gradients fail by it too; the function
   * itself is null where no premise is to be told.
   */
  readonly usedBy: ((declared: GradientDeclaration) => number | null) | null;
}

/**
 * The cause of the failure among dQ, dK and dV; where they pass, the diagnosis of the others. Where a correct kernel may do the
 * same as the cause, and all passes once that is declared, the evidence says how.
 */
export function explainGradients({ usedBy, ...failed }: Unexplained): GradientDiagnosis {
  const { products, sums } = deltaFormats(failed.premises);
  const usedOtherwise = (products ?? sums) === null ? null : usedBy?.(unroundedDelta);
  if (typeof usedOtherwise === 'number') return notBorneOut(usedOtherwise);
  const { declares, ...found } = explainFailed(failed);
  if (declares === undefined || typeof usedBy?.(declares) !== 'number') return found;
  const words = Object.entries(declares).map(([name, value]) => `${name}=${value}`);
  const hint = `all gradients pass by a kernel that is declared so; if that is what it is, say --gradient-premise ${words.join(',')}`;
  return { ...found, evidence: [...found.evidence, hint] };
}

/** A D that is kept in the format that it is computed in. */
const unroundedDelta: GradientDeclaration = { deltaProducts: 'fp64', deltaSums: 'fp64' };

/**
 * The diagnosis where D is not rounded as declared.
 * @param used the largest share of a bound that a kernel without that rounding uses
 */
function notBorneOut(used: number): GradientDiagnosis {
  const sentence = `the declared rounding of D = dO·O is not borne out: by a kernel without it the gradients pass, and the worst element uses ${formatNumber(100 * used)} % of its bound`;
  return foundCause({ id: 'premise-not-borne-out', sentence }, [
    'the roundings of a D of a stored O are known, and these gradients lack them',
  ]);
}

function explainFailed({
  given,
  findings,
  ...judgement
}: Omit<Unexplained, 'usedBy'>): GradientDiagnosis {
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
