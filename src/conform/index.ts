export { compareShares, type BlockTask } from './comparison.js';
export {
  assembleConformance,
  checkConformance,
  type Conformance,
  type InputRange,
  type InstructionConformance,
} from './conformance.js';
export {
  knownInstructions,
  plannedBlocks,
  plannedTask,
  prepareConformance,
  type ConformancePlan,
  type PreparedConformance,
} from './conformance-plan.js';
export { bundledCaptures, type CaptureSource } from './capture.js';
export type { ResultComparison, ResultMismatch } from './comparison.js';
export { mismatchingBlocks } from './silicon-hash.js';
