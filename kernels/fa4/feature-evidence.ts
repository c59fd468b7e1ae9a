import { problemFeatures, type FeatureName, type Problem } from '../../src/problem/index.js';

const compiled = 'the bits of the kernel compiled for sm_100a; no GPU was compared';
const maskMod = `a mask of its own, every block visited: ${compiled}`;
const softcap = `softcap, by tanh.approx: ${compiled}`;

/** Evidence for each feature, beside that for all problems. */
const evidence: Readonly<Partial<Record<FeatureName, string>>> = {
  mask: maskMod,
  segments: maskMod,
  prefix: maskMod,
  bias: `bias as a score_mod: ${compiled}`,
  alibiSlopes: `ALiBi as a score_mod: ${compiled}, and the assembler may contract`,
  sink: `sink: ${compiled}`,
  blockMask: `order of the listed blocks: ${compiled}`,
  sequences: `tiles and tuning of packed sequences: ${compiled}`,
};

/** Evidence for the bits of FlashAttention-4's forward with a problem's features, a line each. */
export function fa4FeatureEvidence(problem: Problem): string[] {
  const ofFeatures = problemFeatures(problem).flatMap((name) => evidence[name] ?? []);
  const capped = problem.softcap === null ? [] : [softcap];
  return [...new Set([...capped, ...ofFeatures])];
}
