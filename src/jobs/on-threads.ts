import type { GradientAuditOptions, GradientTensors } from '../audit/index.js';
import type { Problem } from '../problem/index.js';
import {
  auditGradientsOnThreads as auditGradientsWith,
  auditKernel as auditWith,
  boundKernel as boundWith,
  type AuditCallbacks,
  type AuditRequest,
  type BoundRequest,
  type HelperThread,
} from './audit/index.js';
import { nodeMeans } from './parts/thread-pool.js';

const { startThreads } = nodeMeans;

/**
 * Judges outputs as `auditKernel` of jobs/audit, on worker threads of Node.js where more than one is asked for.
 * @param helper a thread that is there for more audits than this one; null for none
 */
export function auditKernel(
  request: AuditRequest,
  callbacks: AuditCallbacks = {},
  helper: HelperThread | null = null,
) {
  return auditWith(request, callbacks, { ...nodeMeans, helper });
}

/** Bounds a problem as `boundKernel` of jobs/audit, likewise. */
export function boundKernel(
  request: BoundRequest,
  progress: (stage: string, done: number) => void = () => undefined,
) {
  return boundWith(request, progress, startThreads);
}

/** Judges gradients as `auditGradientsOnThreads` of jobs/audit, likewise. */
export function auditGradientsOnThreads(
  problem: Problem,
  tensors: GradientTensors,
  options: GradientAuditOptions,
  threads: number,
  effort?: number,
) {
  return auditGradientsWith(problem, tensors, options, { threads, effort, startThreads });
}
