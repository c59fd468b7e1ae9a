export { emulate, type Emulation, type EmulationOptions } from './emulate.js';
export {
  emulateBackward,
  type BackwardEmulation,
  type EmulatedInputs,
} from './emulate-backward.js';
export { matchGradients, type BackwardMatch } from './match-gradients.js';
