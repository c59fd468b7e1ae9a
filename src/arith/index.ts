export * from './double-double.js';
export {
  addFloat32,
  fusedMultiplyAddFloat32,
  multiplyFloat32,
  subtractFloat32,
  type Float32Options,
} from './float32.js';
export {
  roundSumToFloat32,
  roundSumToFloat32FlushingToZero,
  bitsOfFloat32,
  float32Of,
} from './float32-rounding.js';
export * from './float64-neighbours.js';
export * from './rational.js';
export * from './error-free.js';
export {
  addFloat64,
  divideFloat64,
  fusedMultiplyAddFloat64,
  multiplyFloat64,
  roundScaledInteger,
  squareRootFloat64,
  sumToOdd,
} from './float64.js';
