export {
  recurrentValues,
  type RecurrentArithmetic,
  type RecurrentRounding,
  type RecurrentValue,
} from './arithmetic.js';
export { roundingTo, unrounded } from './rounding.js';
export { runRecurrence, type RecurrentRunOptions } from './run-recurrence.js';
