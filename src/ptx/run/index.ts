export type { ClusterPlan } from './resident-clusters.js';
export type { ExecutionCounts, InstructionCount } from './execution-counts.js';
export type { KernelLaunch } from './cluster-warps.js';
export { runKernel, type KernelOptions, type KernelRun } from './run-kernel.js';
export type { ProgramChange } from './executable.js';
export {
  prepareLaunch,
  runLaunch,
  type LaunchOptions,
  type LaunchRun,
  type PreparedLaunch,
  ptxInstructions,
} from './run-launch.js';
export { turnTakingScheduler } from './turn-taking.js';
export { joinParts, type GridPart } from './grid-parts.js';
export type { Breakpoint, BreakStop, RegisterValues } from './breakpoints.js';
export { mmaOf, type UnitWork, type WorkOfUnits } from './unit-work.js';
