export { atomicWriteFile, makeFolder } from './atomic-write.js';
export { hashTensorFile } from './hash.js';
export { machineFiles, openDeclaring, openTensorFile } from './open-tensor-file.js';
export { readText } from './byte-source.js';
export {
  type RawTensor,
  writeRawTensors,
  writeSafetensors,
  posedKvLayout,
  posedLayout,
  problemMetadata,
  writeProblem,
} from './write-safetensors.js';
export {
  declaredFormatNames,
  layouts,
  namesRead,
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
  problemLayout,
  problemNote,
  problemOutline,
  quoted,
  readProblem,
  safetensorsDtypeOf,
  toHeadsFirst,
  unusedInputs,
  type DeclaredFormats,
  type OpenOptions,
  type ProblemInputName,
  type ProblemSettings,
  type TensorEntry,
  type TensorFile,
} from './tensors/index.js';
