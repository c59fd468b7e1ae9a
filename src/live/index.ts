export {
  startLiveKernel,
  type LiveAnswer,
  type LiveFailure,
  type LiveKernel,
  type OutputReader,
} from './live-kernel.js';
