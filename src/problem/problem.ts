import type { Tensor } from '../formats/index.js';
import type { ProblemFeatures, RotaryTables } from './features.js';
import type { StoredProblem } from './stored.js';

/** Number of keys on each side of its diagonal that a query sees; −1 for no limit on that side. */
export interface Window {
  readonly left: number;
  readonly right: number;
}

/**
 * One attention problem: inputs taken as exact, and the settings of the computation. Tensors have rank
 * 4, or rank 3 for a batch of one. Less common properties are in `ProblemFeatures`.
 */
export interface Problem extends ProblemFeatures {
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
  /** Tables that q and k were rotated by, if they are known. They are not used in the computation. */
  readonly rotary?: RotaryTables;
  /** What a kernel adds to the LSE of its own scores; left out: nothing. */
  readonly lseShift?: LseShift;
  /** The problem whose Q, K or V a kernel quantised itself, so that they are these; left out: they are given so. */
  readonly quantisedFrom?: Problem;
  /** The form in which packed sequences were posed, if it is known; `storedOf` reads it. */
  readonly stored?: StoredProblem;
}

/** Numbers that are added to the LSE of each row, [batch · heads · queries]. */
export interface LseShift {
  readonly values: Float64Array;
  /** The most by which a kernel's are off. */
  readonly errors: Float64Array;
}

/** The sizes of a problem. `heads` counts query heads; query head h reads kv head ⌊h / groupSize⌋. */
export interface ProblemShape {
  readonly batch: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly groupSize: number;
  readonly queries: number;
  readonly keys: number;
  readonly qkDim: number;
  readonly vDim: number;
}
