export { cutlassFmhaModel } from './model.js';
