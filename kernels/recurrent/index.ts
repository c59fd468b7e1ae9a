export {
  recurrentOperands,
  recurrentValues,
  type RecurrentArithmetic,
  type RecurrentRounding,
  type RecurrentValue,
} from './arithmetic.js';
export { emulateRecurrence } from './models/emulate.js';
export {
  findRecurrentFault,
  recurrentFaults,
  type FaultSetting,
  type RecurrentFault,
} from './faults/index.js';
export {
  findRecurrentModel,
  recurrentModels,
  type RecurrentModel,
  type RecurrentModelSettings,
} from './models/models.js';
export { readRecurrentSettings } from './models/model-settings.js';
export { roundingTo, unrounded } from './rounding.js';
export { madeGateFaults } from './gates/faults.js';
export { mamba2Faults } from './mamba2/faults.js';
export {
  applicableFaults,
  faultApplies,
  runRecurrence,
  type RecurrentRunOptions,
} from './run-recurrence.js';
