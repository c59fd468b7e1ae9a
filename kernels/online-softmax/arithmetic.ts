import {
  hardwareExp2Error,
  hardwareExp2Flush,
  hardwareLog2Error,
  hardwareReciprocalError,
} from '../../src/hardware/index.js';
import { RequestError } from '../../src/request-error.js';
import {
  largestScore32,
  roundoff32,
  scaleErrorOf,
  type ExponentArithmetic,
  type KernelArithmetic,
  type SumArithmetic,
} from '../arithmetic.js';
import { polynomialErrors } from './exp2-polynomial.js';
import { exactExponentScale, type Recipe } from './recipe.js';
import { rowSumLaws } from './row-sums.js';
import type { Reciprocal } from './units.js';

/** Largest relative errors of the reciprocals. */
const reciprocalErrors: Readonly<Record<Reciprocal, number>> = {
  'rcp.approx.ftz.f32': hardwareReciprocalError,
  'div.rn.f32': roundoff32,
};

/** Largest relative error of `tanh.approx.f32`. Source: PTX ISA. */
const tanhError = 2 ** -10.987;

function exponentArithmetic(recipe: Recipe, scaleError: number): ExponentArithmetic {
  const { exponent, scoreChange, softmaxScale } = recipe;
  const softcap = scoreChange?.softcap ?? null;
  // The product with the scale, as rounded, and the sum with the addend.
  const ofChange = scoreChange === null ? 0 : 2 * roundoff32 + Math.abs(scaleErrorOf(softmaxScale));
  return {
    // The last rounding, and that of c.
    ofDistance: roundoff32 + Math.abs(scaleError),
    // The rounding of s·c, where it has one of its own.
    ofScore: (exponent.isFused ? 0 : roundoff32) + ofChange * (1 + 2 ** -6),
    common: roundoff32,
    // Quotient, tanh and product; the cap as rounded enters twice, and tanh has a slope of 1 at most.
    ofSoftcap:
      softcap === null
        ? 0
        : (tanhError + 2 * roundoff32 + 2 * Math.abs(scaleErrorOf(softcap))) * (1 + 2 ** -6),
    ...(scoreChange === null ? {} : { ofAddend: roundoff32 * (1 + 2 ** -6) }),
    absolute: 0,
  };
}

/** @throws RequestError for keys in several splits */
export function checkUnsplit(splits: number): void {
  if (splits > 1)
    throw new RequestError(
      `splits is ${splits}; there are no bounds for a combine yet: leave it at 1`,
    );
}

/**
 * The arithmetic of a recipe, for its error bounds: the order of operations is that of the plain forward.
 *
 * @param description the kernel that these bounds are for, in words
 * @throws RequestError for a recipe that visits blocks from the first to the last, or normalises its
 *   output after every one
 */
export function recipeArithmetic(recipe: Recipe, description: string): KernelArithmetic {
  const { tensorCore, tiling, exponent, exponential, rescale, finish } = recipe;
  if (tiling.order !== 'last-first' || finish.normalise !== 'at-the-end')
    throw new RequestError(
      `there are no bounds for ${recipe.kernel}, which normalises its output after every block`,
    );
  const { productsPerSum, alignedFractionBits, resultFractionBits } = tensorCore;
  const products: SumArithmetic = {
    kind: 'fused',
    productsPerSum,
    alignedFractionBits,
    resultFractionBits,
  };
  const exactScale = exactExponentScale(recipe);
  const scaleError = exactScale === 0 ? 0 : exponent.scale / exactScale - 1;
  const { polynomial } = exponential;
  const polynomialError =
    polynomial === null ? { largest: 0, mean: 0 } : polynomialErrors[polynomial.degree];
  const rowSum = rowSumLaws[recipe.rowSum];
  return {
    description,
    scores: products,
    scaleError,
    largestScore: largestScore32,
    scoreLimit: Infinity,
    exponent: exponentArithmetic(recipe, scaleError),
    exponential: {
      hardware: hardwareExp2Error,
      polynomial: polynomialError.largest,
      polynomialMean: polynomialError.mean,
      polynomialColumns: polynomial?.columns ?? [],
    },
    maximum: {
      kind: 'online',
      blockKeys: tiling.keys,
      threshold: rescale.threshold,
      offset: exponent.offset,
    },
    weightFormat: recipe.format,
    overflow: 'bounded',
    values: products,
    rowSumAdditions: rowSum.additions(tiling.keys) + rowSum.totalAdditions,
    rowSumAddition: roundoff32,
    rowSumRounded: false,
    partials: 0,
    finish: {
      normalise: reciprocalErrors[finish.reciprocal] + roundoff32,
      logarithm: hardwareLog2Error,
      elementwise: roundoff32,
    },
    outputFormat: recipe.outFormat,
    outputRounding: 'nearest',
    largestSum: 2 ** 126,
    // Tensor cores and fp32 additions keep subnormals; the exponential does not.
    underflow: { weights: hardwareExp2Flush, sums: 2 ** -149 },
  };
}
