import { alike, type RowTerms, type TechniqueBound, type WeightError } from './technique-bound.js';

/**
 * Largest relative error of ex2.approx.ftz.f32 where the result is normal: over all inputs, on sm_90
 * silicon (`flashproof profile exp2`: 1.4396157e-7 for negative x, less for positive). Rounded up.
 */
export const hardwareExp2Error = 1.44e-7;

/** Below this the unit flushes results to zero. */
export const hardwareExp2Flush = 2 ** -126;

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
