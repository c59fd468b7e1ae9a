export {
  backwardKernel,
  correctBackwards,
  type BackwardKernel,
  type BackwardOutputs,
} from './backward-kernel.js';
export type { BackwardSteps, GradientOf } from './backward-steps.js';
export type { BackwardOptions } from './forward-pass.js';
