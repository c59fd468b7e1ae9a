export { compareAlgebra, type AlgebraComparison, type OutComparison } from './compare-algebra.js';
export { distanceOf, type LseComparison, type WorstDistance } from './compare-lse.js';
export { capLaws, type CapLaw } from './cap-laws.js';
export {
  exactAttentionRow,
  exactFactor,
  exactRowOf,
  exponentsOf,
  factorRatio,
  type ExactRow,
  type RealOf,
  type RowPlace,
} from './exact-row.js';
export {
  namedFactors,
  namedLogarithms,
  nameTolerance,
  relativeDistance,
  type NamedFactor,
} from './factor-names.js';
export { inferFactor, type InferredFactor } from './infer-factor.js';
export { naturalLogarithms, type NaturalLogarithm } from './natural-logarithms.js';
export { power, scaledExponent, weighRow } from './weigh-row.js';
