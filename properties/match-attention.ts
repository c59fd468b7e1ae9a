import { auditOutputs, type AuditOptions, type KernelOutputs } from '../src/audit/index.js';
import type { Problem, Tensor } from '../src/problem/index.js';
import { RequestError } from '../src/request-error.js';

/** What a kernel made of a problem; an LSE that is missing or null is not checked. */
export interface AttentionOutputs {
  readonly out: Tensor;
  readonly lse?: Tensor | null | undefined;
}

/** The audit's verdict, in words. */
export interface AttentionMatch {
  readonly pass: boolean;
  /** The verdict's sentence, then every finding on a line of its own. */
  readonly message: string;
}

/** Whether a value looks like a tensor: it has data and a shape. */
export function isTensor(value: unknown): value is Tensor {
  return typeof value === 'object' && value !== null && 'data' in value && 'shape' in value;
}

/**
 * What a kernel wrote, checked to be tensors.
 * @throws RequestError when it is anything else
 */
export function kernelOutputs(outputs: AttentionOutputs): KernelOutputs {
  const { out, lse = null } = (outputs ?? {}) as Partial<AttentionOutputs>;
  if (!isTensor(out) || !(lse === null || isTensor(lse)))
    throw new RequestError(
      'the outputs are not { out: Tensor, lse?: Tensor | null }; pass what the kernel wrote, with format, shape and data',
    );
  return { out, lse };
}

/**
 * Judges what a kernel made of a problem by `auditOutputs`: every element within the worst-case
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
