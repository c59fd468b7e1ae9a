export { MarkedReads } from './marked-reads.js';
export { createRecorder, type Recorder } from './recorder.js';
export type { TracedInput } from './tensor-tags.js';
export { valueInStore } from './updates.js';
