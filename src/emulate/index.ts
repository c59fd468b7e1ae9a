export { emulate, type Emulation } from './emulate.js';
export { emulateBackward, type BackwardEmulation } from './emulate-backward.js';
export { matchGradients, type BackwardMatch } from './match-gradients.js';
