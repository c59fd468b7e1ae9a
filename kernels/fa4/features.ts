import type { FeatureName, Problem, ProblemShape } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';

/**
 * Features that FlashAttention-4's forward for Blackwell takes beside masks by position: masks, lists of keys, documents and
 * prefixes as a mask_mod, bias or ALiBi as a score_mod, its learnable sink, block sparsity, and sequences of unequal
 * lengths. Pages change where keys are read and no number. It has no dropout. Source: flash_attn/cute/interface.py of
 * Dao-AILab/flash-attention.
 */
export const fa4Features: readonly FeatureName[] = [
  'mask',
  'bias',
  'alibiSlopes',
  'sink',
  'segments',
  'prefix',
  'blockMask',
  'keyLists',
  'sequences',
];

/** The widest head that takes a block mask. */
const widestMaskedHead = 240;

/**
 * Whether a mask is a mask_mod, a function of the pair. This switches causal and window masks off: the function
 * includes them.
 */
export function hasMaskMod({ mask, keyLists, segments, prefix = 0 }: Problem): boolean {
  return mask !== undefined || keyLists !== undefined || segments !== undefined || prefix > 0;
}

/** Whether scores are modified before the mask: then the scale is applied to them, and not to the exponents. */
export function hasScoreMod({ softcap, bias, alibiSlopes }: Problem): boolean {
  return softcap !== null || bias !== undefined || alibiSlopes !== undefined;
}

/** Causal and window masks in the kernel's terms: both off where a mask_mod includes them. */
export function kernelMask(problem: Problem): {
  readonly causal: boolean;
  readonly local: boolean;
} {
  if (hasMaskMod(problem)) return { causal: false, local: false };
  const { causal, window } = problem;
  return { causal, local: window !== null };
}

/** @throws RequestError for features, and pairs of them, that the kernel has no path for */
export function checkFa4Features(problem: Problem, { qkDim }: ProblemShape): void {
  const { softcap, bias, alibiSlopes, sink, blockMask } = problem;
  const mods = { softcap: softcap ?? undefined, bias, 'ALiBi slopes': alibiSlopes };
  const given = Object.entries(mods).filter(([, mod]) => mod !== undefined);
  if (given.length > 1)
    throw new RequestError(
      `fa4 has one score_mod, but the problem has ${given.map(([name]) => name).join(' and ')}; leave one out`,
    );
  for (const [name, tensor] of Object.entries({
    bias,
    alibi_slopes: alibiSlopes,
    sink: sink?.logits,
  }))
    if (tensor?.format === 'fp64')
      throw new RequestError(`${name} is fp64; the fa4 model takes fp32 or shorter`);
  if (sink?.inLse === false)
    throw new RequestError('fa4 has the sink in its LSE; say that the LSE has it, or leave it out');
  if (qkDim > widestMaskedHead && blockMask !== undefined)
    throw new RequestError(`fa4 has no block mask for head dimension ${qkDim}; leave it out`);
}
