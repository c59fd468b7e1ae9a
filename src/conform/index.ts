export { compareShares, type BlockTask } from './compare-blocks.js';
export { assembleConformance, checkConformance } from './conformance.js';
export {
  knownInstructions,
  plannedBlocks,
  plannedTask,
  prepareConformance,
  type ConformancePlan,
  type PlannedFunction,
  type PreparedConformance,
} from './conformance-plan.js';
export type {
  Conformance,
  ConformanceOptions,
  FunctionFindings,
  InputRange,
  InstructionConformance,
} from './conformance.js';
export { bundledCaptures, type CaptureSource } from './capture.js';
export type { ResultComparison, ResultMismatch } from './compare-results.js';
export { createBlockHasher, mismatchingBlocks } from './silicon-hash.js';
export type { BlockHasher, BlockProgress, HashComparison } from './silicon-hash.js';
