import { hardwareExp2Error, hardwareLog2Error } from '../../src/hardware/index.js';
import type { Problem } from '../../src/problem/index.js';
import { roundoff32, type KernelArithmetic } from '../arithmetic.js';
import { largestRowNorm } from '../largest-row-norm.js';
import { arithmeticOfFactors, normaliseError } from '../online-softmax/first-last-arithmetic.js';
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
  recipe: Recipe,
  description: string,
): KernelArithmetic {
  const largestScore =
    problem.scale * largestRowNorm(problem.q, qkDim) * largestRowNorm(problem.k, qkDim);
  const logSumExp = 2 * (largestScore + Math.log(Math.max(keys, 1)));
  return arithmeticOfFactors(
    problem,
    recipe,
    description,
    (scaleError) =>
      hardwareExp2Error +
      hardwareLog2Error +
      normaliseError +
      (logSumExpRoundings * roundoff32 + scaleError) * logSumExp,
  );
}
