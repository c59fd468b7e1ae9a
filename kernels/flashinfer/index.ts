export { flashInferModel } from './model.js';
