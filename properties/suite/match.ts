import {
  auditOutputs,
  describePlace,
  judgeOutputs,
  type AuditOptions,
} from '../../src/audit/index.js';
import type { Problem, Tensor } from '../../src/problem/index.js';
import { formatNumber } from '../../src/words/index.js';
import { isTensor, kernelOutputs, type AttentionOutputs } from '../laws/index.js';

/** The audit's verdict, in words. */
export interface AttentionMatch {
  readonly pass: boolean;
  /** The verdict's sentence, then every finding on a line of its own. */
  readonly message: string;
}

/**
 * Judges a kernel's outputs for a problem by `auditOutputs`: every element within the worst-case
 * bound of a correct kernel, no systematic scale or bias, and the LSE if there is one.
 * @throws RequestError when a tensor does not fit the problem
 */
export function matchAttention(
  problem: Problem,
  outputs: AttentionOutputs,
  options?: AuditOptions,
): AttentionMatch {
  const { verdict } = auditOutputs(problem, kernelOutputs(outputs), options);
  const findings = verdict.findings.map(({ test, statement }) => `  ${test}: ${statement}`);
  return { pass: verdict.pass, message: [verdict.sentence, ...findings].join('\n') };
}

/**
 * For any test runner: throws an Error with the verdict and all its findings unless the outputs match
 * the problem's attention.
 * @throws RequestError when a tensor does not fit the problem
 */
export function assertMatchesAttention(
  problem: Problem,
  outputs: AttentionOutputs,
  options?: AuditOptions,
): void {
  const { pass, message } = matchAttention(problem, outputs, options);
  if (!pass) throw new Error(message);
}

/** The bounds to use, and the exact attention if it is already known: see `AuditOptions`. */
export type BoundOptions = Pick<AuditOptions, 'arithmetic' | 'reference' | 'progress'>;

/**
 * Compares every element of an output, and of its LSE where there is one, with the worst case of a
 * correct kernel (or of the declared arithmetic); no test that looks at many of them together. NaN,
 * infinities and rows without keys must be where exact attention has them. Where no element has a bound
 * nothing is judged, and nothing matches.
 * @param received the kernel's outputs, or O alone
 * @throws RequestError when a tensor does not fit the problem
 */
export function matchBound(
  problem: Problem,
  received: AttentionOutputs | Tensor,
  options: BoundOptions = {},
): AttentionMatch {
  const outputs = kernelOutputs(isTensor(received) ? { out: received } : received);
  const judged = judgeOutputs(problem, outputs, { ...options, diagnose: false });
  const {
    verdict,
    reference,
    shape,
    outputs: {
      out: { elements },
    },
  } = judged;
  const findings = verdict.findings.filter(({ isWorstCase }) => isWorstCase);
  const pass = findings.length === 0 && verdict.judged;
  const used = `${formatNumber(elements.worstRatio * 100)} % of its bound`;
  const none =
    elements.unbounded === 0 ? '' : `; ${elements.unbounded} of ${elements.elements} have none`;
  const lines = pass
    ? [`every element is within its worst-case bound; the worst uses ${used}${none}`]
    : verdict.judged
      ? findings.map(({ statement }) => statement)
      : [verdict.sentence, ...findings.map(({ statement }) => statement)];
  if (elements.worst !== null && (pass || elements.outside > 0)) {
    const { at, bound } = elements.worst;
    const row = (at.batch * shape.heads + at.head) * shape.queries + at.query!;
    const index = row * shape.vDim + at.column!;
    const found = judged.outputs.out.values[index];
    lines.push(
      `worst element: ${found} for ${reference.quantities.out.values[index]} ± ${formatNumber(bound)} at ${describePlace(at)}`,
    );
  }
  return { pass, message: lines.join('\n') };
}

/**
 * For any test runner: throws an Error that names the worst element unless every element of an output,
 * and of its LSE where there is one, is within its worst-case bound; see `matchBound`.
 * @throws RequestError when a tensor does not fit the problem
 */
export function assertWithinBound(
  problem: Problem,
  received: AttentionOutputs | Tensor,
  options?: BoundOptions,
): void {
  const { pass, message } = matchBound(problem, received, options);
  if (!pass) throw new Error(message);
}
