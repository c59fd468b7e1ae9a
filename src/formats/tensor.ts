import type { Float16Array } from '@petamoriken/float16';
import type { FormatName } from './format.js';

/**
 * The typed array that stores a tensor's elements, one per format: fp64 Float64Array, fp32 and tf32
 * Float32Array, fp16 Float16Array (of @petamoriken/float16, or the runtime's own), bf16 Uint16Array
 * of bit patterns, e4m3 and e5m2 Uint8Array of bit patterns.
 */
export type TensorData = Float64Array | Float32Array | Float16Array | Uint16Array | Uint8Array;

/** A dense tensor in row-major order. */
export interface Tensor {
  readonly format: FormatName;
  readonly shape: readonly number[];
  readonly data: TensorData;
}
