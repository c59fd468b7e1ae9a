import type { Finding } from '../findings.js';
import { lostParts, type Evidence, type ReachedVerdict } from '../verdict.js';
import type { GradientDiagnosis } from './diagnosis/diagnosis.js';
import type { JudgedGradient } from './judge-gradient.js';

/** The verdict on the gradients of a kernel, of each of which something has to be judged. */
export interface GradientVerdict extends ReachedVerdict<GradientDiagnosis> {
  /** Parts of the gradients that the verdict does not cover, a clause each. */
  readonly notJudged: readonly string[];
}

/**
 * The evidence on gradients, and the parts of them that a verdict does not cover.
 * @param left those that are known already, a clause each
 */
export function gradientEvidence(
  judged: readonly JudgedGradient[],
  findings: readonly Finding[],
  left: readonly string[],
): { readonly evidence: Evidence<GradientDiagnosis>; readonly notJudged: readonly string[] } {
  // Of a problem without keys dK has no elements, which is no reason not to judge dQ.
  const some = judged.filter(({ elements }) => elements.elements > 0);
  const lost = lostParts(judged).map((part) => `${part}, which are no larger than underflow`);
  return {
    evidence: {
      judged,
      required: some.length === 0 ? judged : some,
      findings,
      unjudged: {
        unbounded: (named) => `no element of ${named} has a bound`,
        lost: (named) => `nothing in ${named} is larger than underflow`,
      },
    },
    notJudged: [...left, ...lost],
  };
}
