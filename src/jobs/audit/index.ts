export {
  auditKernel,
  type AuditCallbacks,
  type AuditMeans,
  type AuditRequest,
  type AuditResult,
  type MeasuredModel,
} from './audit-kernel.js';
export { auditFile, type FileAudit } from './audit-file.js';
export { type AuditSettings, seededRows, type RowsRequest } from './audit-settings.js';
export type { FileAuditMeans, MatchCandidate, MatchRequest } from './audit-work.js';
export { compareArguments, createOutputComparer } from './compare-outputs.js';
export type { KernelSource, OpenProblem, ReadyKernel } from './kernel-source.js';
export {
  outputGradientArgument,
  readOutputGradient,
  type ReadGradients,
} from './read-gradients.js';
export {
  canonicalOutput,
  judgedOutputs,
  naturalLse,
  readOutputs,
  readStoredArgument,
  readTensorArgument,
  type JudgedOutputs,
  type SourcedOutputs,
  type SourcedTensor,
  type TensorPlaces,
  type TensorReading,
} from './read-outputs.js';
export { readShared, shareProblem, type SharedProblem } from './part-source.js';
export { sendable, unshare, withoutViews, type Shared } from './shared-values.js';
export {
  threadPool,
  type HelperThread,
  type StartThreads,
  type ThreadAnswer,
  type ThreadPool,
} from './threads.js';
export { threadWork, type PartThreadData, type ThreadWork } from './thread-work.js';
export { boundKernel, type BoundRequest, type BoundResult, type KeptBounds } from './bound.js';
export { auditGradientsOnThreads } from './judge-gradients.js';
export { boundGradients, type GradientBoundRequest } from './bound-gradients.js';
export {
  declaredArithmetic,
  declaredGradients,
  declaredModel,
  declaredPremises,
  isModel,
  judgedNames,
  modelNamed,
  settingsOfForward,
  type ArithmeticRequest,
  type DeclaredArithmetic,
} from './declared-arithmetic.js';
export {
  documentHead,
  listHead,
  secondsSince,
  type DocumentHead,
  type ListHead,
} from './document-head.js';
export { exp2Curves } from './exp2-curves.js';
