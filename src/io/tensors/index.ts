export type {
  ByteSource,
  Codecs,
  Platform,
  TensorEntry,
  TensorFile,
  TensorFiles,
} from './tensor-file.js';
export { openTensorSource } from './open-source.js';
export { rawTensorFile, type RawTensor } from './raw-file.js';
export { scaleTensorNames } from './scales.js';
export { tensorFile, type HeldTensor } from './read-tensors.js';
export {
  checkDeclarations,
  declaredFormatNames,
  formatNote,
  type DeclaredFormats,
  type OpenOptions,
} from './dtype.js';
export { bytesOf, writtenType, packed } from './element-storage.js';
export { printable, quoted } from './messages.js';
export {
  checkedTensors,
  checkTensor,
  elementCount,
  type NamedTensors,
  declaredIn,
  declaringFile,
  type DeclaringFile,
} from './named-tensors.js';
export { chainFile, type ChainFile, type ChainPart } from './links/chain-file.js';
export {
  linkFile,
  type LinkFile,
  type LinkNames,
  type LinkSettings,
  type LinkSource,
  type StoredBytes,
} from './links/link-file.js';
export { npyArray, npyTensorName } from './npy/npy.js';
export { maxHeaderBytes, safetensorsDtypeOf, safetensorsDtypes } from './safetensors/header.js';
export { JsonCursor } from './safetensors/json-cursor.js';
export { toHeadsFirst } from './problem/canonical.js';
export {
  cacheNames,
  namesRead,
  problemInputNames,
  type ProblemInputName,
  type ReadNames,
} from './problem/inputs.js';
export { openTensorArgument, ownTensor, type ChosenTensor } from './problem/tensor-argument.js';
export {
  layouts,
  parseBlockSize,
  parseBoolean,
  parseDropout,
  parseKvIndexOf,
  parseKvLayout,
  parseLayout,
  parsePrefix,
  parseScale,
  parseSoftcap,
  parseWindow,
  problemLayout,
  problemNote,
  type Layout,
  withoutIgnored,
  type ProblemSettings,
} from './problem/settings.js';
export { problemOutline } from './problem/outline.js';
export { readProblem } from './problem/read-problem.js';
export { unusedInputs } from './problem/unused-inputs.js';
export { likelyTensors, outputRename, refuseMisnamedInputs } from './problem/usual-names.js';
export { renamedFile } from './renamed-file.js';
export {
  arrangeRecurrent,
  asFamilyStores,
  familyShape,
  type RecurrentArrangement,
  type RecurrentRows,
} from './recurrence/arrangement.js';
export {
  readRecurrence,
  recurrentTensor,
  type ReadRecurrence,
} from './recurrence/read-recurrence.js';
export {
  parseFamily,
  parseNormalisation,
  parseStateLayout,
  recurrentFamily,
  stateLayouts,
  type RecurrentSettings,
} from './recurrence/settings.js';
