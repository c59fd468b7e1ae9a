export {
  notStarted,
  startLiveKernel,
  writtenOutputs,
  type LiveAnswer,
  type LiveFailure,
  type LiveKernel,
  type OutputReader,
} from './live-kernel.js';
export { unaskedTensors } from './kernel-answer.js';
