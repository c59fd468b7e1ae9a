export { fa1Model } from './model.js';
export { fa1BlockKeys, fa1Recipe, type Fa1Architecture } from './recipe.js';
