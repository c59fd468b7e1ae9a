export { createNaiveAttention, type NaiveAttention } from './attention.js';
export { naiveGradients } from './gradients.js';
export { naiveFloat32Model, naiveInputModel, naiveArithmetic } from './models.js';
export {
  yardstickAttention,
  yardstickAttention as textbookAttention,
} from './yardstick-attention.js';
