import type { FormatName } from '../../formats/index.js';
import type { Problem } from '../../problem.js';
import { premisesByFormat } from '../premises.js';
import type { KernelArithmetic } from './kernel-arithmetic.js';
import { largestScore32 } from './sum-error.js';

/**
 * What is admitted of any correct kernel, in any order of operations: the premises of
 * `premisesByFormat` for the formats of Q and V, with an output in `outputFormat`.
 */
export function anyKernelArithmetic(problem: Problem, outputFormat: FormatName): KernelArithmetic {
  // fp64 inputs with a shorter output are fp32 tensors that somebody widened on the way to a file.
  const working = (input: FormatName) =>
    input === 'fp64' && outputFormat !== 'fp64' ? 'fp32' : input;
  const premises = premisesByFormat[working(problem.q.format)];
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
    weightFormat: working(problem.v.format),
    overflow: 'fault',
    values: sums,
    rowSumAdditions: 0,
    rescales: false,
    finish: { normalise: 4 * elementwise, logarithm, elementwise: 4 * elementwise },
    outputFormat,
    // A kernel may add weights of up to 2^24 before it divides by their sum.
    largestSum: working(problem.v.format) === 'fp64' ? Infinity : 2 ** 102,
    underflow: { weights: underflow, sums: underflow },
  };
}
