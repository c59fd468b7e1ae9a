export {
  startLiveKernel,
  writtenOutputs,
  type LiveKernel,
  type OutputReader,
} from './live-kernel.js';
export { notStarted, type LiveAnswer, type LiveFailure, type LiveProcess } from './live-process.js';
export {
  startLiveRecurrence,
  type AskedRecurrence,
  type LiveRecurrence,
} from './live-recurrence.js';
export { unaskedTensors } from './kernel-answer.js';
