import { problemFeatures, type FeatureName, type Problem } from '../../src/problem/index.js';

const mod = (what: string): string =>
  `${what}: [model] read from flash_attn/cute/softmax.py and utils.py; no GPU was compared, contraction is a guess`;
const maskMod =
  'a mask of its own: [model] read from flash_attn/cute/mask.py; every block is visited, causal and window masks are in it';

const softcap =
  'softcap, by tanh.approx: the bits of the kernel compiled for sm_100a; no GPU was compared';

/** What each feature rests on, beside what all problems do. */
const evidence: Readonly<Partial<Record<FeatureName, string>>> = {
  mask: maskMod,
  segments: maskMod,
  prefix: maskMod,
  bias: mod('bias as a score_mod'),
  alibiSlopes: mod('ALiBi as a score_mod'),
  sink: 'sink: the bits of the kernel compiled for sm_100a; no GPU was compared',
  blockMask:
    'order of the listed blocks: [model] read from flash_attn/cute/block_sparse_utils.py; no GPU was compared',
  sequences:
    'tiles and tuning of packed sequences: the bits of the kernel compiled for sm_100a; no GPU was compared',
};

/** What the bits of FlashAttention-4's forward rest on for a problem's features, a line each. */
export function fa4FeatureEvidence(problem: Problem): string[] {
  const ofFeatures = problemFeatures(problem).flatMap((name) => evidence[name] ?? []);
  const capped = problem.softcap === null ? [] : [softcap];
  return [...new Set([...capped, ...ofFeatures])];
}
