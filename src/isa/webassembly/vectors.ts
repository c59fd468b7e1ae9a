export { f32x4, f64x2 } from './float-vectors.js';
export { i16x8, i32x4, i64x2, i8x16, v128 } from './integer-vectors.js';
export { call, f32, f64, i32, i64 } from './scalars.js';
export {
  highWords,
  interleaveHigh,
  interleaveLow,
  joinHigh,
  joinLow,
  lowWords,
  swapHalves,
} from './shuffles.js';
