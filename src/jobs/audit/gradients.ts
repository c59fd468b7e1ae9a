import {
  auditGradients,
  auditGradientsApart,
  type GradientAudit,
  type GradientAuditOptions,
  type GradientTensors,
} from '../../audit/index.js';
import type { Problem } from '../../problem/index.js';
import { shareGroups } from './thread-work.js';
import type { StartThreads } from './threads.js';

/** Number of threads that judge gradients. */
export interface GradientThreads {
  readonly threads: number;
  /** See `auditGradientsApart`. */
  readonly effort?: number | undefined;
  readonly startThreads: StartThreads;
}

/**
 * Judges gradients as `auditGradients`, on that many threads: the report does not depend on their number.
 * @throws RequestError as `auditGradients`
 */
export async function auditGradientsOnThreads(
  problem: Problem,
  tensors: GradientTensors,
  options: GradientAuditOptions,
  { threads, effort, startThreads }: GradientThreads,
): Promise<GradientAudit> {
  if (threads === 1) return auditGradients(problem, tensors, options);
  return auditGradientsApart(
    problem,
    tensors,
    options,
    {
      start: (data, groups) =>
        startThreads(Math.min(threads, groups), 'measureGroup', shareGroups(data)),
    },
    effort,
  );
}
