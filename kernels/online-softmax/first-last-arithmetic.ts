import {
  hardwareExp2Error,
  hardwareExp2Flush,
  hardwareLog2Error,
  hardwareReciprocalError,
} from '../../src/hardware/index.js';
import type { Problem } from '../../src/problem/index.js';
import { largestScore32, roundoff32, type KernelArithmetic } from '../arithmetic.js';
import { largestRowNorm } from '../row-features.js';
import type { Recipe } from './recipe.js';

/** Roundings of m·c before and now, of the exponent of α, and of the products with α. */
const factorRoundings = 4;

/**
 * The arithmetic of a recipe that visits blocks from the first to the last, normalises at the end and adds up weights in any order. Where the
 * exponent of α is that of a weight, m·c less the rounded m′·c, its error grows with the scores: none exceeds the product of norms.
 *
 * @param description the kernel that these bounds are for, in words
 */
export function firstLastArithmetic(
  problem: Problem,
  { qkDim }: { readonly qkDim: number },
  recipe: Recipe,
  description: string,
): KernelArithmetic {
  const largestScore =
    Math.abs(problem.scale) * largestRowNorm(problem.q, qkDim) * largestRowNorm(problem.k, qkDim);
  return arithmeticOfFactors(
    problem,
    recipe,
    description,
    (scaleError) =>
      hardwareExp2Error + (factorRoundings * roundoff32 + scaleError) * (1 + 2 * largestScore),
  );
}

/** The relative error of an output that is divided by its row sum, by the hardware's reciprocal. */
export const normaliseError = hardwareReciprocalError + 2 * roundoff32;

/**
 * The arithmetic of a recipe that visits blocks from the first to the last and adds up weights in any order.
 *
 * @param description the kernel that these bounds are for, in words
 * @param factorError the relative error of the factor that older sums are multiplied by, from that of the scale
 */
export function arithmeticOfFactors(
  problem: Problem,
  { tensorCore, tiling, exponent, outFormat, format, rowSum }: Recipe,
  description: string,
  factorError: (scaleError: number) => number,
): KernelArithmetic {
  const { productsPerSum, alignedFractionBits, resultFractionBits } = tensorCore;
  const loss = (productsPerSum + 1) * 2 ** -alignedFractionBits + 2 ** -resultFractionBits;
  const scaleError = exponent.scale / (problem.scale * Math.LOG2E) - 1;
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
        error: factorError(Math.abs(scaleError)),
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
    rowSumRounded: rowSum === 'tensor-core',
    partials: 0,
    finish: {
      normalise: normaliseError,
      logarithm: hardwareLog2Error,
      elementwise: 2 * roundoff32,
    },
    outputFormat: outFormat,
    outputRounding: 'nearest',
    largestSum: 2 ** 126,
    underflow: { weights: hardwareExp2Flush, sums: 2 ** -149 },
  };
}
