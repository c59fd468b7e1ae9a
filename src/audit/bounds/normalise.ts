import type { TechniqueBound } from './technique-bound.js';

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
