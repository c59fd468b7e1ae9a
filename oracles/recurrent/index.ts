export {
  recurrentOracle,
  type RecurrentOracleOptions,
  type RecurrentReference,
} from './recurrent-oracle.js';
export { recurrentGradients, type RecurrentGradientReference } from './recurrent-gradients.js';
export type { RecurrentGradients } from './token-gradients.js';
export { gateRecurrence, makesGates } from './gate-recurrence.js';
export {
  mamba2Recurrence,
  stepsOf as mamba2Steps,
  type Mamba2Recurrence,
  type Steps as Mamba2Steps,
} from './mamba2/plain-problem.js';
