import type { TechniqueBound } from './technique-bound.js';

/**
 * Largest relative error of rcp.approx.ftz.f32 for results that are normal numbers: over all inputs,
 * on sm_90 silicon (`flashproof profile rcp`: 9.82917e-8). Rounded up.
 */
export const hardwareReciprocalError = 9.83e-8;

/**
 * Largest error of lg2.approx.ftz.f32, absolute for results below 1 in magnitude and relative to
 * larger ones: over all inputs, on sm_90 silicon (`flashproof profile log2`). Also what the PTX ISA
 * promises.
 */
export const hardwareLog2Error = 2 ** -22;

/** The end of a row: the reciprocal and the product with it; the logarithm and what joins it to m. */
export const normaliseBound: TechniqueBound = {
  // A kernel that divides every weight by the row sum rounds every one.
  elements: ({ arithmetic: { finish, maximum, underflow } }) => {
    const isOfWeights = maximum.kind === 'whole-row';
    return ({ size, magnitude }) =>
      finish.normalise * (isOfWeights ? magnitude : size) + underflow.sums;
  },
  lse: (row) => {
    const { finish, scaleError } = row.arithmetic;
    const { logarithm } = row;
    const natural = Math.abs(row.lse);
    const maximum = row.finalMaximum * Math.LN2;
    return (
      finish.logarithm * Math.LN2 * Math.max(1, logarithm) * (1 + finish.logarithm) +
      finish.elementwise * (2 * maximum + 2 * logarithm + 3 * natural) +
      Math.abs(scaleError) * maximum
    );
  },
};
