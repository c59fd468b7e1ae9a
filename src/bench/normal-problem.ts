import { encodeFromFloat64, formats, type FormatName } from '../formats/index.js';
import type { Problem, Tensor } from '../problem/index.js';
import { normalValues } from './random-values.js';

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
