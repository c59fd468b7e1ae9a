export type {
  ExponentArithmetic,
  ExponentialArithmetic,
  FinishArithmetic,
  KernelArithmetic,
  MaximumRule,
  SumArithmetic,
} from '../../../kernels/index.js';
