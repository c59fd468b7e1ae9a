import type { GradientAuditOptions, GradientTensors } from '../audit/index.js';
import { hashTensorFile } from '../io/index.js';
import type { Problem } from '../problem/index.js';
import {
  auditFile as auditFileWith,
  auditGradientsOnThreads as auditGradientsWith,
  auditKernel as auditWith,
  boundKernel as boundWith,
  type AuditCallbacks,
  type AuditMeans,
  type AuditRequest,
  type AuditSettings,
  type BoundRequest,
} from './audit/index.js';
import { matchModels } from './match-models.js';
import { nodeMeans } from './parts/helper-thread.js';

const { startThreads } = nodeMeans;

/** Resources that several audits share, one after the other. */
export type LastingMeans = Pick<AuditMeans, 'helper' | 'memories'>;

/**
 * Judges outputs as `auditKernel` of jobs/audit, on worker threads of Node.js if more than one is asked for.
 * @param lasting resources that outlive this audit
 */
export function auditKernel(
  request: AuditRequest,
  callbacks: AuditCallbacks = {},
  lasting: LastingMeans = {},
) {
  return auditWith(request, callbacks, { ...nodeMeans, ...lasting });
}

/**
 * Audits a file as `auditFile` of jobs/audit, likewise.
 * @throws RequestError for a file that cannot be judged
 */
export function auditFile(
  path: string,
  settings: AuditSettings,
  progress: NonNullable<AuditCallbacks['progress']>,
  lasting: LastingMeans = {},
) {
  const means = { ...nodeMeans, ...lasting, hash: hashTensorFile, matchModels };
  return auditFileWith(path, settings, means, progress);
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
