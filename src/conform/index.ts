export { checkConformance, knownInstructions } from './conformance.js';
export type {
  Conformance,
  ConformanceOptions,
  InputRange,
  InstructionConformance,
} from './conformance.js';
export type { CaptureSource } from './capture.js';
export { conformanceSentence, renderConformance } from './render-conformance.js';
