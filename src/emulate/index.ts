export { emulate, type Emulation, type EmulationOptions } from './emulate.js';
export {
  emulateBackward,
  type BackwardEmulation,
  type BackwardOptions,
  type EmulatedInputs,
} from './emulate-backward.js';
