import { encodeFromFloat64, type FormatName, formats } from '../formats/index.js';
import type { Problem, Tensor } from '../problem/index.js';

/** Number of different values before they repeat: more than branch predictors and caches can learn. */
const period = 2 ** 18;

/**
 * Uniform numbers in (0, 1): a 32-bit linear congruential generator with the constants of Numerical
 * Recipes. They are good enough for timing, which only needs values of all sizes without a pattern.
 */
function uniformSource(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state + 0.5) / 2 ** 32;
  };
}

/** `count` standard normal numbers (Box and Muller's method), the same for a seed on every machine. */
export function normalValues(count: number, seed: number): Float64Array {
  const uniform = uniformSource(seed);
  const values = new Float64Array(count);
  const fresh = Math.min(count, period);
  for (let i = 0; i < fresh; i++) {
    const radius = Math.sqrt(-2 * Math.log(uniform()));
    values[i] = radius * Math.cos(2 * Math.PI * uniform());
  }
  for (let at = fresh; at < count; at += fresh)
    values.copyWithin(at, 0, Math.min(fresh, count - at));
  return values;
}

/** The size of a self-attention problem, batch 1. */
export interface ProblemSize {
  readonly heads: number;
  readonly seqlen: number;
  readonly dim: number;
}

function normalTensor(
  format: FormatName,
  { heads, seqlen, dim }: ProblemSize,
  seed: number,
): Tensor {
  const values = normalValues(heads * seqlen * dim, seed);
  return { format, shape: [heads, seqlen, dim], data: encodeFromFloat64(formats[format], values) };
}

/** Attention with standard normal Q, K and V, scale 1/√dim, without masks or softcap unless given. */
export function normalProblem(
  format: FormatName,
  size: ProblemSize,
  settings: Partial<Pick<Problem, 'causal' | 'softcap'>> = {},
): Problem {
  return {
    q: normalTensor(format, size, 1),
    k: normalTensor(format, size, 2),
    v: normalTensor(format, size, 3),
    scale: 1 / Math.sqrt(size.dim),
    causal: false,
    window: null,
    softcap: null,
    ...settings,
  };
}
