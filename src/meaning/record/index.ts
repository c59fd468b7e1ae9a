export { createRecorder, type Recorder, type TracedInput } from './recorder.js';
export { valueInStore } from './updates.js';
