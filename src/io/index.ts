export { atomicWriteFile, type Chunks, type WriteOptions } from './atomic-write.js';
export type { DeclaredFormats } from './dtype.js';
export { hashTensorFile } from './hash.js';
export { printable, quoted } from './messages.js';
export type { NamedTensors } from './named-tensors.js';
export { writeNpy } from './npy/npy.js';
export { writeNpz } from './npz/npz.js';
export { openTensorFile, type OpenOptions } from './open-tensor-file.js';
export { readText } from './byte-source.js';
export { writeSafetensors } from './safetensors/safetensors.js';
export type { TensorEntry, TensorFile } from './tensor-file.js';
export { layouts, toHeadsFirst, type Layout } from './problem-file.js';
export {
  parseLayout,
  parseScale,
  parseSoftcap,
  parseWindow,
  problemLayout,
  problemMetadata,
  problemNote,
  readProblem,
  type ProblemSettings,
} from './problem-file.js';
export { unusedInputs, type UnusedInputs } from './unused-inputs.js';
