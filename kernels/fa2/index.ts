export {
  fa2Architectures,
  fa2Configuration,
  fa2Tile,
  type Fa2Architecture,
  type Fa2Build,
  type Fa2Configuration,
  type Fa2Overrides,
} from './configuration.js';
export { fa2Evidence } from './recipe.js';
export { fa2Model } from './model.js';
export { fa2Recipe } from './recipe.js';
