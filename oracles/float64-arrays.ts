import { createFloat64Exp2 } from './exp2-levels.js';
import { createFloat64Log2 } from './log2-levels.js';

/** Writes the function of the first `count` inputs, in fp64, to `values`. */
export type Float64ArrayFunction = (
  inputs: Float32Array,
  values: Float64Array,
  count: number,
) => void;

/** The relative error that the values of `createExp2Array` stay below. */
export const exp2ArrayError = 3 * 2 ** -53;

/** The relative error that the values of `createLog2Array` stay below. */
export const log2ArrayError = 5 * 2 ** -53;

/**
 * A function for 2^x of fp32 numbers x in [−1000, 1000], in fp64 with relative error below
 * `exp2ArrayError` (proven in exp2-levels.ts); integers give the power of two itself. Meaningless for
 * other inputs.
 */
export function createExp2Array(): Float64ArrayFunction {
  const exp2 = createFloat64Exp2();
  return (inputs, values, count) => {
    for (let i = 0; i < count; i++) values[i] = exp2(inputs[i]);
  };
}

/**
 * A function for log2 x of finite fp32 numbers x > 0, in fp64 with relative error below
 * `log2ArrayError` (proven in log2-levels.ts); powers of two give the integer itself. Meaningless for
 * other inputs.
 */
export function createLog2Array(): Float64ArrayFunction {
  const log2 = createFloat64Log2();
  return (inputs, values, count) => {
    for (let i = 0; i < count; i++) values[i] = log2(inputs[i]);
  };
}
