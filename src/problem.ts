import type { Float16Array } from '@petamoriken/float16';
import type { FormatName } from './formats/index.js';

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

/** How many keys on each side of its diagonal a query sees; −1 for no limit on that side. */
export interface Window {
  readonly left: number;
  readonly right: number;
}

/** One attention problem: inputs taken as exact, and what is to be computed from them. */
export interface Problem {
  /** [batch, q heads, seqlen_q, qk dim] */
  readonly q: Tensor;
  /** [batch, kv heads, seqlen_k, qk dim] */
  readonly k: Tensor;
  /** [batch, kv heads, seqlen_k, v dim] */
  readonly v: Tensor;
  /** Factor applied to Q·K before the softmax. */
  readonly scale: number;
  /** Bottom-right aligned: query i sees key j when j ≤ i + seqlen_k − seqlen_q. */
  readonly causal: boolean;
  /** Sliding window around the bottom-right aligned diagonal, or null for none. */
  readonly window: Window | null;
  /** Scores become cap·tanh(score / cap) after the scale; null for none. */
  readonly softcap: number | null;
}
