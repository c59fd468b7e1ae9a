export {
  boundGradients,
  canonicalOutput,
  judgedOutputs,
  readOutputs,
  readStoredArgument,
  readTensorArgument,
  declaredArithmetic,
  declaredGradients,
  declaredModel,
  declaredPremises,
  documentHead,
  exp2Curves,
  isModel,
  judgedNames,
  listHead,
  modelNamed,
  naturalLse,
  sampleFile,
  outputGradientArgument,
  readOutputGradient,
  seededRows,
  settingsOfForward,
  secondsSince,
  type ArithmeticRequest,
  type AuditCallbacks,
  type AuditRequest,
  type AuditResult,
  type BoundRequest,
  type BoundResult,
  type KeptBounds,
  type DeclaredArithmetic,
  type DocumentHead,
  type GradientBoundRequest,
  type KeysFile,
  type JudgedOutputs,
  type SourcedOutputs,
  type SourcedTensor,
  type TensorReading,
  type ListHead,
  type MeasuredModel,
  type RowsRequest,
  type SampledFile,
} from './audit/index.js';
export {
  auditGradientsOnThreads,
  auditKernel,
  boundKernel,
  type LastingMeans,
} from './on-threads.js';
export { createHelperThread } from './parts/helper-thread.js';
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
export { createOutputComparer, type OutputComparer } from './compare-outputs.js';
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
  chainOutputs,
  openLaunch,
  openTemplate,
  type LaunchPaths,
  type LaunchTemplate,
  type OpenedLaunch,
} from './launch/open-launch.js';
export { readTensorsBeside, tensorsBeside } from './launch/tensors-beside.js';
export { launchTensor } from './launch/launch-tensors.js';
export { runOnProblem, type ProblemRun } from './launch/run-on-problem.js';
export {
  type FindingGroup,
  type LaunchAccess,
  type LaunchFinding,
  type MachineStatements,
  sourceText,
} from './launch/launch-findings.js';
export type { RecordedComparison } from './launch/recorded-results.js';
export { runDocument, type RunDocument } from './launch/run-document.js';
export {
  runLaunchFile,
  type LaunchTracer,
  type RunOutput,
  type RunRequest,
  type RunResult,
} from './launch/run-launch-file.js';
export { exploreLaunchFile, type ExploredLaunch } from './launch/explore-launch-file.js';
export { groupTitle, judgeRun, type RunVerdict } from './launch/run-verdict.js';
export { runOnThreads } from './launch/run-on-threads.js';
export { judgeMutants, type MutantResults, type MutantsRequest } from './launch/judge-mutants.js';
export { startCompiledKernel } from './launch/compiled-kernel.js';
