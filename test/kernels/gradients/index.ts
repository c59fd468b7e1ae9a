export { deltaOf } from './backward-steps.js';
export {
  backwardKernel,
  correctBackwards,
  type BackwardKernel,
  type BackwardOutputs,
} from './backward-kernel.js';
export type {
  BackwardInputs,
  BackwardSteps,
  GradientArrays,
  GradientOf,
  RowStatistics,
} from './backward-steps.js';
export type { BackwardOptions } from './forward-pass.js';
export type { FaultyBackward } from './fault.js';
export { faultyBackwards } from './faulty-backwards.js';
export {
  drawDout,
  exactGradients,
  gradientError,
  gradientsOf,
  sharedOf,
} from './gradient-errors.js';
