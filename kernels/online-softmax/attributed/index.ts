export { createAttributedForward, type AttributedForward } from './attributed-kernel.js';
export type { AttributedTileResult } from './attributed-tile.js';
export {
  techniqueDefinitions,
  techniques,
  type EmulatedTechniques,
  type Technique,
} from './techniques.js';
