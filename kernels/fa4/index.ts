export { createExp2PolynomialArray } from './exp2-array.js';
export {
  exp2Coefficients,
  exp2Polynomial,
  exp2PolynomialBits,
  reduceRange,
  type PolynomialDegree,
  type RangeReduction,
} from './exp2.js';
export {
  exp2Pattern,
  exp2Tunings,
  fragmentColumns,
  fragmentsPerRow,
  polynomialShare,
  usesPolynomial,
  type Exp2Configuration,
  type Exp2Pattern,
  type Exp2Tuning,
} from './exp2-tuning.js';
