export { checkConformance, knownInstructions } from './conformance.js';
export type {
  Conformance,
  ConformanceOptions,
  InputRange,
  InstructionConformance,
} from './conformance.js';
export type { CaptureSource } from './capture.js';
export type { ResultComparison, ResultMismatch } from './compare-results.js';
export { conformanceSentence, renderConformance } from './render-conformance.js';
export { createBlockHasher, mismatchingBlocks } from './silicon-hash.js';
export type { BlockHasher, BlockProgress, HashComparison } from './silicon-hash.js';
