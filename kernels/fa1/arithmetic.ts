import {
  hardwareExp2Error,
  hardwareExp2Flush,
  hardwareLog2Error,
  hardwareReciprocalError,
} from '../../src/hardware/index.js';
import type { Problem } from '../../src/problem/index.js';
import { largestScore32, roundoff32, type KernelArithmetic } from '../arithmetic.js';
import { largestRowNorm } from '../largest-row-norm.js';
import type { Recipe } from '../online-softmax/recipe.js';

/** Roundings of m·scale, of the LSE twice, of its quotient, and of the exponent of α twice. */
const logSumExpRoundings = 6;

/**
 * The arithmetic of FlashAttention-1's forward. The sums before a block enter with the factor e^(LSE −
 * m·scale), whose error grows with the LSE: no LSE exceeds the largest score in magnitude by more than
 * the logarithm of the number of keys, and no score the product of norms.
 */
export function fa1Arithmetic(
  problem: Problem,
  { keys, qkDim }: { readonly keys: number; readonly qkDim: number },
  { tensorCore, tiling, exponent, outFormat, format }: Recipe,
  description: string,
): KernelArithmetic {
  const { productsPerSum, alignedFractionBits, resultFractionBits } = tensorCore;
  const loss = (productsPerSum + 1) * 2 ** -alignedFractionBits + 2 ** -resultFractionBits;
  const exactScale = problem.scale * Math.LOG2E;
  const scaleError = exponent.scale / exactScale - 1;
  const largestScore =
    problem.scale * largestRowNorm(problem.q, qkDim) * largestRowNorm(problem.k, qkDim);
  const logSumExp = 2 * (largestScore + Math.log(Math.max(keys, 1)));
  const normalise = hardwareReciprocalError + 2 * roundoff32;
  return {
    description,
    scores: { kind: 'fused', productsPerSum, alignedFractionBits, resultFractionBits },
    scaleError,
    largestScore: largestScore32,
    scoreLimit: Infinity,
    exponent: {
      ofDistance: roundoff32 + Math.abs(scaleError),
      ofScore: 0,
      common: roundoff32,
      ofSoftcap: 0,
      absolute: 0,
    },
    exponential: {
      hardware: hardwareExp2Error,
      polynomial: 0,
      polynomialMean: 0,
      polynomialColumns: [],
    },
    maximum: {
      kind: 'unknown',
      shared: 'row',
      factors: {
        error:
          hardwareExp2Error +
          hardwareLog2Error +
          normalise +
          (logSumExpRoundings * roundoff32 + Math.abs(scaleError)) * logSumExp,
        tileKeys: tiling.keys,
      },
    },
    weightFormat: format,
    overflow: 'bounded',
    values: {
      kind: 'any-order',
      perProduct: loss / productsPerSum + roundoff32,
      ofOperands: 0,
      smallestOperand: 0,
    },
    rowSumAdditions: 0,
    rowSumAddition: roundoff32,
    rowSumRounded: false,
    partials: 0,
    finish: { normalise, logarithm: hardwareLog2Error, elementwise: 2 * roundoff32 },
    outputFormat: outFormat,
    outputRounding: 'nearest',
    largestSum: 2 ** 126,
    underflow: { weights: hardwareExp2Flush, sums: 2 ** -149 },
  };
}
