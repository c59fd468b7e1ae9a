export {
  onEachVector,
  onHalves,
  onPairs,
  onWords,
  type Emit,
  type SourceValue,
  type VectorFunction,
  type Vectors,
} from './emit.js';
export { comparisonCode, type ComparisonCode } from './comparisons.js';
export * from './directed-rounding.js';
export * from './float16.js';
export * from './float32.js';
export * from './fused-multiply-add.js';
export * from './half.js';
export * from './integers.js';
export * from './variable-shift.js';
export {
  exp2,
  exp2Ftz,
  log2,
  reciprocal,
  reciprocalSquareRoot,
  squareRoot,
  tanh,
} from './mufu/special-functions.js';
export { cosine, sine } from './mufu/sine.js';
export { unflushed } from './mufu/unflushed.js';
export { approximateQuotient } from './mufu/quotient.js';
