import {
  auditGradients,
  auditGradientsApart,
  type GradientAudit,
  type GradientAuditOptions,
  type GradientTensors,
} from '../audit/index.js';
import type { Problem } from '../problem/index.js';
import { shareGroups, startGroupThreads } from './parts/group-threads.js';

/**
 * Judges gradients as `auditGradients`, on so many threads: the report does not depend on how many.
 * @param effort see `auditGradientsApart`
 * @throws RequestError as `auditGradients`
 */
export async function auditGradientsOnThreads(
  problem: Problem,
  tensors: GradientTensors,
  options: GradientAuditOptions,
  threads: number,
  effort?: number,
): Promise<GradientAudit> {
  if (threads === 1) return auditGradients(problem, tensors, options);
  return auditGradientsApart(
    problem,
    tensors,
    options,
    (data, groups) => startGroupThreads(Math.min(threads, groups), shareGroups(data)),
    effort,
  );
}
