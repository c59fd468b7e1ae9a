import { factorsError } from '../premises.js';
import type { KernelArithmetic } from './kernel-arithmetic.js';
import type { RowTerms, TechniqueBound, WeightError } from './technique-bound.js';
import { hardwareExp2Error } from '../../hardware/index.js';
import { roundoff32 } from './sum-error.js';

/** A factor 2^-growth of less than this is flushed to zero: what was summed before is lost. */
const largestGrowth = 125.5;

/**
 * The relative error of one factor α = ex2.approx.ftz((m − m′)·c) whose exponent is −growth (log2):
 * that of the unit, and that of the difference, of c and of the product. 1 where α may be flushed to
 * zero. Theorem 6 of docs/bounds.md.
 */
export function rescaleFactorError(growth: number, scaleError: number): number {
  if (growth > largestGrowth) return 1;
  const exponent = growth * (2 * roundoff32 + Math.abs(scaleError)) * (1 + 2 ** -20);
  return hardwareExp2Error + (1 + 2 ** -20) * Math.expm1(Math.LN2 * exponent);
}

/**
 * The error of all factors that a weight may be multiplied by where they are no better than the weights:
 * one for every tile of keys but the last. 0 where they are.
 */
export function coarseFactors({ maximum }: KernelArithmetic, keys: number): number {
  return maximum.kind === 'unknown' ? factorsError(maximum.factors, keys) : 0;
}

/** The errors of the factors as relative errors of the weights that they multiply. */
export function rescaleWeightError({ errors }: RowTerms): WeightError {
  return { mean: errors.rescales, rootMeanSquare: Math.sqrt(errors.rescalesSquared) };
}

/** Factors, and the rounding of the products with them: of O and of the row sum. */
export const rescaleBound: TechniqueBound = {
  elements: (row) => {
    const { rootMeanSquare } = rescaleWeightError(row);
    const { rescaledSum, rescaleUnderflow } = row.errors;
    return ({ scatter, rescaled, size }) =>
      rootMeanSquare * scatter + rescaled + rescaledSum * size + rescaleUnderflow;
  },
  lse: (row) => rescaleWeightError(row).mean + row.errors.rescaledSum,
};
