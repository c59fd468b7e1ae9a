export {
  auditKernel,
  type AuditCallbacks,
  type AuditMeans,
  type AuditRequest,
} from './audit-kernel.js';
export { auditFile, type FileAudit, type PlainFileAudit } from './audit-file.js';
export { type AuditSettings, seededRows, type RowsRequest } from './audit-settings.js';
export type { FileAuditMeans, MatchCandidate, MatchRequest } from './audit-work.js';
export { compareArguments, createOutputComparer } from './compare-outputs.js';
export type {
  KernelSource,
  ObtainedRecurrence,
  OpenedKernel,
  OpenProblem,
  OpenRecurrence,
  ReadyKernel,
  RecurrentSource,
} from './kernel-source.js';
export {
  outputGradientArgument,
  readOutputGradient,
  type ReadGradients,
} from './read-gradients.js';
export {
  judgedOutputs,
  readOutputs,
  type JudgedOutputs,
  type SourcedTensor,
  type TensorPlaces,
} from './read-outputs.js';
export { readShared, shareProblem } from './part-source.js';
export { sendable, unshare, withoutViews, type Shared } from './shared-values.js';
export {
  threadPool,
  type HelperThread,
  type StartThreads,
  type ThreadAnswer,
  type ThreadPool,
} from './threads.js';
export { threadWork, type PartThreadData, type ThreadWork } from './thread-work.js';
export { boundKernel, type BoundRequest, type KeptBounds } from './bound.js';
export { auditGradientsOnThreads } from './judge-gradients.js';
export { boundGradients, type GradientBoundRequest } from './bound-gradients.js';
export {
  declaredPremises,
  isModel,
  judgedNames,
  modelNamed,
  settingsOfForward,
  type ArithmeticRequest,
} from './declared-arithmetic.js';
export {
  documentHead,
  listHead,
  secondsSince,
  type DocumentHead,
  type ListHead,
} from './document-head.js';
export { linkContractOf, type AuditContract } from './links/audit-link.js';
