import { alike, type RowTerms, type TechniqueBound, type WeightError } from './technique-bound.js';

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
