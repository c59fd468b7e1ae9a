import type { FormatName } from '../../formats/index.js';
import type { Problem } from '../../problem.js';
import { problemPremises, workingFormat, type Premises } from '../premises.js';
import type { KernelArithmetic } from './kernel-arithmetic.js';
import { largestScore32 } from './sum-error.js';

/**
 * What is admitted of any correct kernel, in any order of operations, with an output in `outputFormat`.
 * @param premises how coarsely it may compute
 */
export function anyKernelArithmetic(
  problem: Problem,
  outputFormat: FormatName,
  premises: Premises = problemPremises(problem, outputFormat),
): KernelArithmetic {
  const weightFormat = workingFormat(problem.v.format, outputFormat);
  const { accumulation, elementwise, exponential, logarithm, underflow, tanh } = premises;
  const sums = { kind: 'any-order', perProduct: accumulation } as const;
  return {
    description: 'any correct kernel',
    scores: sums,
    scaleError: 0,
    largestScore: largestScore32,
    exponent: {
      ofDistance: 0,
      ofScore: 4 * elementwise,
      common: 0,
      ofSoftcap: problem.softcap === null ? 0 : tanh + 4 * elementwise,
      absolute: 0,
    },
    exponential: {
      hardware: exponential,
      polynomial: exponential,
      polynomialMean: 0,
      polynomialColumns: [],
    },
    maximum: { kind: 'unknown' },
    weightFormat,
    overflow: 'fault',
    values: sums,
    rowSumAdditions: 0,
    finish: { normalise: 4 * elementwise, logarithm, elementwise: 4 * elementwise },
    outputFormat,
    // A kernel may add weights of up to 2^24 before it divides by their sum.
    largestSum: weightFormat === 'fp64' ? Infinity : 2 ** 102,
    underflow: { weights: underflow, sums: underflow },
  };
}
