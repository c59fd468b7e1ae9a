export type { ClusterPlan } from './resident-clusters.js';
export {
  runKernel,
  type ClusterNumbers,
  type KernelOptions,
  type KernelRun,
} from './run-kernel.js';
export type { ProgramChange } from './executable.js';
export {
  prepareLaunch,
  runLaunch,
  type LaunchOptions,
  type LaunchRun,
  type PreparedLaunch,
} from './run-launch.js';
export { turnTakingScheduler } from './turn-taking.js';
export { findCtaMeeting } from './cta-meeting.js';
export { joinParts, type GridPart } from './grid-parts.js';
export type { Breakpoint, BreakStop, RegisterValues } from './breakpoints.js';
export { mmaOf } from './unit-work.js';
export type { LaneTracer, TracedMemory, TracedOperation } from './lane-tracer.js';
