export {
  boundGradients,
  compareArguments,
  createOutputComparer,
  readOutputs,
  declaredPremises,
  documentHead,
  isModel,
  listHead,
  readOutputGradient,
  type AuditContract,
  seededRows,
  settingsOfForward,
  secondsSince,
  type ArithmeticRequest,
  type AuditRequest,
  type AuditSettings,
  type FileAudit,
  type PlainFileAudit,
  type BoundRequest,
  type KeptBounds,
  type GradientBoundRequest,
  type ListHead,
  type RowsRequest,
} from './audit/index.js';
export {
  auditFile,
  auditGradientsOnThreads,
  auditKernel,
  boundKernel,
  type LastingMeans,
} from './on-threads.js';
export { createHelperThread } from './parts/helper-thread.js';
export { emulatedKernel } from './check/emulated-kernel.js';
export type { ExecutionFailure, KernelUnderTest } from './check/kernel-under-test.js';
export * from './check/recurrent/index.js';
export { searchInvariance, type InvarianceRequest } from './check/invariance.js';
export { liveKernel } from './check/live-kernel.js';
export { rejectEmptyPlan, rejectEmptyReport } from './check/run.js';
export { checkProperties, type CheckLimitsRequest, type CheckScopeRequest } from './check/run.js';
export {
  backwardDocument,
  emulateKernel,
  emulationDocument,
  type BackwardResult,
  type EmulatedPass,
  type EmulateResult,
} from './emulate.js';
export { modelWithProgram, type MachineRequest } from './machine/request.js';
export type { ClusterFinding, MachineResults } from './machine/run.js';
export { emulateOnMachine, machineDocument, type ClusterRunner } from './machine/run.js';
export { machineNames, schedules } from './machine/request.js';
export { compiledSource } from './sources/compiled-source.js';
export { emulatedSource } from './sources/emulated-source.js';
export { liveSource, readExecuted } from './sources/live-source.js';
export { openLaunch, type LaunchTemplate } from './launch/open-launch.js';
export {
  contractOfLaunch,
  type AttentionContract,
  type LaunchContract,
} from './launch/contract-of-launch.js';
export type { ContractOutput } from './launch/contract-output.js';
export { openContract, type GivenContract } from './launch/open-contract.js';
export { runOnProblem } from './launch/template/run-on-problem.js';
export { type FindingGroup, type LaunchAccess, sourceText } from './launch/launch-findings.js';
export { lineOfSite } from '../ptx/syntax/index.js';
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
export { judgeMutants, type MutantResults } from './launch/judge-mutants.js';
export { startCompiledKernel } from './launch/compiled-kernel.js';
export * from './certify/index.js';
