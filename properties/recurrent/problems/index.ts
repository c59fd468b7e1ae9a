export {
  axesOf,
  inputNames,
  pickElements,
  placeOf,
  type Axis,
  type AxisSizes,
  type InputName,
  type Picks,
  type Place,
  type TensorName,
} from './axes.js';
export type { RecurrentConstraints } from './constraints.js';
export { describeRecurrence } from './describe-recurrence.js';
export { gatesOf, withPlainSteps } from './mamba2-steps.js';
export {
  axisSizes,
  givenInputs,
  pickParts,
  plainRecurrence,
  poseRecurrence,
  sequenceRanges,
  withoutInputs,
  withValues,
  type PlainInput,
  type PlainRecurrence,
  type PosedRecurrence,
} from './plain-recurrence.js';
export { recurrentProblem } from './recurrence-arbitrary.js';
export { drawRecurrence } from './recurrence-generator.js';
export {
  narrowedTo,
  recurrentRegime,
  recurrentRegimeNames,
  recurrentRegimes,
  type RecurrentRegimeName,
} from './regimes.js';
export type { RecurrentRegime } from './regime.js';
