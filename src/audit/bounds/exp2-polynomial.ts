import { alike, type RowTerms, type TechniqueBound, type WeightError } from './technique-bound.js';
import type { PolynomialDegree } from '../../../kernels/index.js';

/** The error of FlashAttention-4's software exp2 of one degree, relative to 2^x. */
export interface PolynomialError {
  /** Largest magnitude. */
  readonly largest: number;
  /** Mean over all fractions of x, signed. */
  readonly mean: number;
}

/**
 * By degree: the largest error over all fp32 numbers of [−126, 0] (`flashproof profile exp2`, rounded
 * up), and the mean of p(f)/2^f − 1 over f in [0, 1]. An exponent above 0 has the fraction of one below,
 * and so its error, up to 127, where the kernel's contract ends.
 */
export const polynomialErrors: Readonly<Record<PolynomialDegree, PolynomialError>> = {
  1: { largest: 3.87515e-2, mean: 1.593e-2 },
  2: { largest: 2.07558e-3, mean: -8.983e-8 },
  3: { largest: 8.76876e-5, mean: 8.237e-6 },
  4: { largest: 3.04866e-6, mean: -3.167e-8 },
  5: { largest: 1.55674e-7, mean: 3.36e-9 },
};

/** The polynomial's error on the weights that it computes. */
export function polynomialWeightError({ arithmetic, errors }: RowTerms): WeightError {
  return alike(arithmetic.exponential.polynomial, errors.polynomialMass);
}

/** Whether the kernel computes any weight by the polynomial, which is wrong between 2^-127 and 2^-126. */
function isUsed({ arithmetic }: RowTerms): boolean {
  return arithmetic.exponential.polynomialColumns.includes(true);
}

export const exp2PolynomialBound: TechniqueBound = {
  elements: (row) => {
    const { rootMeanSquare } = polynomialWeightError(row);
    const mayUnderflow = isUsed(row);
    return ({ scatter, underflow }) => rootMeanSquare * scatter + (mayUnderflow ? underflow : 0);
  },
  lse: (row) => polynomialWeightError(row).mean + (isUsed(row) ? row.lost : 0),
};
