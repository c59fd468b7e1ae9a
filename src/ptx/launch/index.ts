export { bindLaunch } from './bind-launch.js';
export { evaluate, type Variables } from './expression.js';
export type { Launch, LaunchTensor } from './launch.js';
export type { ContractFile, ContractKind, ContractNames, TensorView } from './contract-file.js';
export {
  type BufferFile,
  type LaunchFile,
  type OutputFile,
  type ParameterFile,
  parseContract,
  parseLaunchFile,
} from './launch-file.js';
export { problemVariables } from './amounts.js';
export { decodeTensorMapBytes } from './encoded-tensor-map.js';
export { checkTensorMap, type LaunchTensorMap } from './tensor-map.js';
