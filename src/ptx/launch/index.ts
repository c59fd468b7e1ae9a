export { bindLaunch, type LaunchContext } from './bind-launch.js';
export { evaluate, type Variables } from './expression.js';
export type { Extents, Launch, LaunchOutput, LaunchTensor, PointerTarget } from './launch.js';
export {
  type Amount,
  type BufferFile,
  type EncodedTensorMapFile,
  type LaunchFile,
  type OutputFile,
  type ParameterFile,
  parseLaunchFile,
  type TensorMapFile,
} from './launch-file.js';
export type { ScalarKind } from './launch-schemas.js';
export { layParameters, type ParameterPlace } from './parameter-layout.js';
export { problemVariables } from './amounts.js';
export { decodeTensorMapBytes } from './encoded-tensor-map.js';
export { checkTensorMap, type LaunchTensorMap, type TensorMapSwizzle } from './tensor-map.js';
