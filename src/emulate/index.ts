export { emulate, type Emulation, type EmulationOptions } from './emulate.js';
