export { sageAttentionModel } from './model.js';
