export { atomicWriteFile, type Chunks, type WriteOptions } from './atomic-write.js';
export { declaredFormatNames, type DeclaredFormats } from './dtype.js';
export { hashTensorFile } from './hash.js';
export { printable, quoted } from './messages.js';
export type { NamedTensors } from './named-tensors.js';
export { writeNpy } from './npy/npy.js';
export { writeNpz } from './npz/npz.js';
export { openTensorFile, type OpenOptions } from './open-tensor-file.js';
export { readText } from './byte-source.js';
export { safetensorsDtypeOf } from './safetensors/header.js';
export { type RawTensor, writeRawTensors, writeSafetensors } from './safetensors/safetensors.js';
export type { TensorEntry, TensorFile } from './tensor-file.js';
export { toHeadsFirst } from './problem/canonical.js';
export {
  namesRead,
  problemInputNames,
  problemInputs,
  type InputChoice,
  type ProblemInputName,
  type ReadNames,
} from './problem/inputs.js';
export { openTensorArgument, ownTensor, type ChosenTensor } from './problem/tensor-argument.js';
export {
  layouts,
  parseBlockSize,
  parseDropout,
  parseKvLayout,
  parseLayout,
  parsePrefix,
  parseScale,
  parseSoftcap,
  parseWindow,
  problemLayout,
  problemNote,
  type Layout,
  type ProblemSettings,
} from './problem/settings.js';
export { problemOutline } from './problem/outline.js';
export { readProblem } from './problem/read-problem.js';
export {
  posedKvLayout,
  posedLayout,
  problemMetadata,
  writeProblem,
} from './problem/write-problem.js';
export { unusedInputs, type UnusedInputs } from './problem/unused-inputs.js';
