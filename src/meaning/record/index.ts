export { MarkedReads } from './marked-reads.js';
export { createRecorder, type Recorder, type RecorderStart, type TracedInput } from './recorder.js';
export { valueInStore } from './updates.js';
