export { atomicWriteFile, type Chunks, type WriteOptions } from './atomic-write.js';
export { hashTensorFile } from './hash.js';
export { makeFolder } from './make-folder.js';
export { machineFiles, openDeclaring, openTensorFile } from './open-tensor-file.js';
export { readText } from './byte-source.js';
export { type RawTensor, writeRawTensors, writeSafetensors } from './write-safetensors.js';
export { posedKvLayout, posedLayout, problemMetadata, writeProblem } from './write-problem.js';
export {
  declaredIn,
  declaredFormatNames,
  layouts,
  namesRead,
  openTensorArgument,
  ownTensor,
  parseBlockSize,
  parseDropout,
  parseKvLayout,
  parseLayout,
  parsePrefix,
  parseScale,
  parseSoftcap,
  parseWindow,
  printable,
  problemInputNames,
  problemInputs,
  problemLayout,
  problemNote,
  problemOutline,
  quoted,
  readProblem,
  safetensorsDtypeOf,
  toHeadsFirst,
  unusedInputs,
  type ChosenTensor,
  type DeclaredFormats,
  type DeclaringFile,
  type InputChoice,
  type Layout,
  type NamedTensors,
  type OpenOptions,
  type ProblemInputName,
  type ProblemSettings,
  type ReadNames,
  type TensorEntry,
  type TensorFile,
  type UnusedInputs,
} from './tensors/index.js';
