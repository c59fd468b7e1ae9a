export { attributedKernel, hardwareTechniques } from './attributed-kernel.js';
export type { AttributedTileResult } from './attributed-tile.js';
export { techniques, type EmulatedTechniques, type Technique } from '../../techniques.js';
