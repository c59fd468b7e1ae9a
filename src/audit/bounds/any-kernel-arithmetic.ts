import type { FormatName } from '../../formats/index.js';
import type { Problem } from '../../problem/index.js';
import { problemPremises, type Premises } from '../premises.js';
import type { KernelArithmetic } from './kernel-arithmetic.js';

/**
 * What is admitted of any correct kernel, in any order of operations, with an output in `outputFormat`.
 * @param premises how coarsely it may compute
 */
export function anyKernelArithmetic(
  problem: Problem,
  outputFormat: FormatName,
  premises: Premises = problemPremises(problem, outputFormat),
): KernelArithmetic {
  const { accumulation, elementwise, exponential, logarithm, underflow, tanh } = premises;
  const { operands, scoreRounding, scoreFloor } = premises;
  const softcap = problem.softcap === null ? 0 : 1;
  return {
    description: premises.description,
    scores: {
      kind: 'any-order',
      perProduct: premises.scoreAccumulation,
      ofOperands: operands,
      smallestOperand: premises.smallestOperand,
    },
    scaleError: 0,
    largestScore: premises.largestScore,
    scoreLimit: premises.scoreLimit,
    exponent: {
      // What is written once the maximum is subtracted.
      ofDistance: scoreRounding,
      // What is written before and after the scale.
      ofScore: 4 * elementwise + 2 * scoreRounding,
      common: 0,
      ofSoftcap: softcap * (tanh + 4 * elementwise + scoreRounding),
      absolute: scoreFloor * Math.LOG2E,
    },
    exponential: {
      hardware: exponential,
      polynomial: exponential,
      polynomialMean: 0,
      polynomialColumns: [],
    },
    maximum: { kind: 'unknown', shared: premises.maximum, factors: premises.factors },
    weightFormat: premises.weightFormat,
    overflow: 'fault',
    values: { kind: 'any-order', perProduct: accumulation, ofOperands: 0, smallestOperand: 0 },
    rowSumAdditions: 0,
    rowSumAddition: premises.rowSumAddition,
    rowSumRounded: premises.rowSumRounded,
    partials: premises.partials,
    finish: { normalise: 4 * elementwise, logarithm, elementwise: 4 * elementwise },
    outputFormat,
    outputRounding: premises.outputRounding,
    largestSum: premises.largestSum,
    underflow: { weights: underflow, sums: premises.sumUnderflow },
  };
}
