export {
  fa3Configuration,
  fa3Tile,
  type Fa3Configuration,
  type Fa3Overrides,
} from './configuration.js';
export { fa3Model } from './model.js';
export { fa3Recipe } from './recipe.js';
export { fa3Mask, type Fa3Mask } from './mask.js';
