export {
  fa3Configuration,
  fa3Mask,
  fa3Tile,
  type Fa3Configuration,
  type Fa3Mask,
  type Fa3Overrides,
} from './configuration.js';
export { fa3Model } from './model.js';
export { fa3Recipe } from './recipe.js';
