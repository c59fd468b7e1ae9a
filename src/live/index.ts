export { startLiveKernel } from './live-kernel.js';
export type { LiveAnswer, LiveFailure, LiveKernel, OutputReader } from './live-kernel.js';
