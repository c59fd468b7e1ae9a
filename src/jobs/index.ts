export {
  auditKernel,
  type AuditCallbacks,
  type AuditRequest,
  type AuditResult,
  type MeasuredModel,
} from './audit.js';
export { sampleFile, type KeysFile, type SampledFile } from './parts/sampled-file.js';
export type { RowsRequest } from './chosen-rows.js';
export { boundKernel, type BoundRequest, type BoundResult } from './bound.js';
export { auditGradientsOnThreads } from './gradients.js';
export { boundGradients, type GradientBoundRequest } from './bound-gradients.js';
export { emulatedKernel } from './check/emulated-kernel.js';
export type { ExecutionFailure, KernelUnderTest } from './check/kernel-under-test.js';
export { liveKernel, type LiveKernelRequest } from './check/live-kernel.js';
export { rejectEmptyPlan, rejectEmptyReport } from './check/run.js';
export {
  checkProperties,
  type CheckCallbacks,
  type CheckRequest,
  type CheckScopeRequest,
} from './check/run.js';
export {
  createOutputComparer,
  type OutputComparer,
  type SourcedTensor,
} from './compare-outputs.js';
export {
  declaredArithmetic,
  declaredModel,
  declaredPremises,
  isModel,
  judgedNames,
  modelNamed,
  type ArithmeticRequest,
  type DeclaredArithmetic,
} from './declared-arithmetic.js';
export { declaredGradients } from './declared-gradients.js';
export {
  documentHead,
  listHead,
  secondsSince,
  type DocumentHead,
  type ListHead,
} from './document-head.js';
export {
  backwardDocument,
  emulateKernel,
  emulationDocument,
  type BackwardFiles,
  type BackwardResult,
  type EmulatedPass,
  type EmulateRequest,
  type EmulateResult,
  type EmulationRunner,
  type HashedFile,
} from './emulate.js';
export { exp2Curves } from './exp2-curves.js';
export { modelWithProgram, type MachineOptions, type MachineRequest } from './machine/request.js';
export type { ClusterFinding, MachineResults } from './machine/run.js';
export {
  emulateOnMachine,
  machineDocument,
  type ClusterRunner,
  type EmulateMachineRequest,
  type EmulateMachineResult,
} from './machine/run.js';
export { machineNames, schedules } from './machine/request.js';
export {
  compareModel,
  identifyGradients,
  type MatchCandidate,
  type MatchRequest,
} from './match-models.js';
export {
  openLaunch,
  openTemplate,
  type LaunchPaths,
  type LaunchTemplate,
  type OpenedLaunch,
} from './launch/open-launch.js';
export { readTensorsBeside, tensorsBeside } from './launch/tensors-beside.js';
export { launchTensor } from './launch/launch-tensors.js';
export { runOnProblem, type ProblemRun } from './launch/run-on-problem.js';
export type { LaunchFinding, MachineStatements } from './launch/launch-findings.js';
export type { RecordedComparison } from './launch/recorded-results.js';
export { runDocument, type RunDocument } from './launch/run-document.js';
export {
  hasFailed,
  runLaunchFile,
  type LaunchTracer,
  type RunOutput,
  type RunRequest,
  type RunResult,
} from './launch/run-launch-file.js';
export { judgeMutants, type MutantResults, type MutantsRequest } from './launch/judge-mutants.js';
export { startCompiledKernel } from './launch/compiled-kernel.js';
