export {
  recurrentValues,
  type RecurrentArithmetic,
  type RecurrentRounding,
  type RecurrentValue,
} from './arithmetic.js';
