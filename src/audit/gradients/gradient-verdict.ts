import type { Finding } from '../findings.js';
import { lostParts, reachVerdict, type ReachedVerdict } from '../verdict.js';
import type { GradientDiagnosis } from './diagnosis/diagnosis.js';
import type { JudgedGradient } from './judge-gradient.js';

/** The verdict on the gradients of a kernel, of each of which something has to be judged. */
export interface GradientVerdict extends ReachedVerdict<GradientDiagnosis> {
  /** Parts of the gradients that the verdict does not cover, a clause each. */
  readonly notJudged: readonly string[];
}

/**
 * Pass when every test of every gradient passes.
 * @param diagnose called once the audit fails; null where no cause is wanted
 */
export function reachGradientVerdict(
  judged: readonly JudgedGradient[],
  findings: readonly Finding[],
  notJudged: readonly string[],
  diagnose: (() => GradientDiagnosis) | null,
): GradientVerdict {
  // Of a problem without keys dK has no elements, which is no reason not to judge dQ.
  const some = judged.filter(({ elements }) => elements.elements > 0);
  const evidence = {
    judged,
    required: some.length === 0 ? judged : some,
    findings,
    unjudged: {
      unbounded: (named: string) => `no element of ${named} has a bound`,
      lost: (named: string) => `nothing in ${named} is larger than underflow`,
    },
  };
  const lost = lostParts(judged).map((part) => `${part}, which are no larger than underflow`);
  return {
    ...reachVerdict(evidence, diagnose && { diagnose }),
    notJudged: [...notJudged, ...lost],
  };
}
