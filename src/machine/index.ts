export * from './arithmetic/index.js';
export type { ClusterLaunch, RunOptions } from './cluster-launch.js';
export { type Amounts, type CtaCounters } from './counters.js';
export {
  explore,
  exploreRandom,
  exploreSchedules,
  type Exploration,
  type ExploredRun,
  type ExploreOptions,
  type Outcome,
  type RunUnder,
} from './explore.js';
export { findingKinds, type Finding, type FindingAccess, type FindingKind } from './finding.js';
export {
  clusterAddress,
  splitClusterAddress,
  type Fragment,
  type Instruction,
  type InstructionCounts,
  type InstructionOf,
  type Opcode,
  type WarpPlace,
  type WarpProgram,
} from './instruction.js';
export { memoryModels, type MemoryModel, type MemoryModelName } from './memory-model.js';
export * from './memory/index.js';
export { createMmaUnits, type MachineArchitecture, type MmaUnits } from './mma-units.js';
export { balancedShare, type BalancedShare, type RooflineAtShare } from './roofline-balance.js';
export { differenceOfCounters, sumOfCounters } from './roofline-counters.js';
export type { RooflineUnit, UnitPart } from './roofline-units.js';
export { clocksOf, operandClocks, roofline, type Roofline, type RooflineLine } from './roofline.js';
export { runCluster, type ClusterRun } from './run-cluster.js';
export type { Scheduler } from './scheduler.js';
export * from './schedulers/index.js';
export type { Step, TraceEvent } from './state.js';
export * from './tensor-core/index.js';
export * from './trace/index.js';
export { unitRates, type TimedUnit, type UnitRates } from './unit-rates.js';
