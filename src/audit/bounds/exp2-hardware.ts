import { alike, type RowTerms, type TechniqueBound, type WeightError } from './technique-bound.js';

/** The unit's error on the weights that it computes. */
export function hardwareWeightError({ arithmetic, errors }: RowTerms): WeightError {
  return alike(arithmetic.exponential.hardware, errors.mass - errors.polynomialMass);
}

export const exp2Hardware: TechniqueBound = {
  elements: (row) => {
    const { rootMeanSquare } = hardwareWeightError(row);
    return ({ scatter, underflow }) => rootMeanSquare * scatter + underflow;
  },
  lse: (row) => hardwareWeightError(row).mean + row.lost,
};
