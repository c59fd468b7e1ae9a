import type { TechniqueDefinition } from '../../attributed-kernel.js';

/**
 * The sources of error of FlashAttention-4's forward, in the order in which they act on a block of
 * keys. Each can be emulated, which is as the GPU does it, or exact; `techniqueDefinitions` says what
 * that means for each, and this is what it means for all:
 *
 * - Exact is fp64. What it adds of its own is some 2^-50 of Σ p|v|, below any technique's error.
 * - An instruction needs operands in its format. Where an exact operation came before, they are fp64
 *   numbers: the instruction is executed on the nearest operands that it takes, and the error that it
 *   makes there is carried over to the exact result of the actual operands. So an emulated technique
 *   alone shows its own error only, and where all before it are emulated the operands are what they
 *   are on the GPU and so is the result, to the last bit.
 * - The path is the GPU's own whatever is emulated: the running maximum (of the emulated scores), which
 *   rescales are skipped, which columns the polynomial computes. Any path gives exact attention if
 *   everything is exact, so a lagging maximum is no error by itself; it changes what others do.
 */
export const techniques = [
  'qk-accumulate',
  'scale-subtract',
  'exp2-hardware',
  'exp2-polynomial',
  'p-round',
  'rescale',
  'pv-accumulate',
  'row-sum',
  'normalise',
  'output-round',
] as const;
/** One of {@link techniques}. */
export type Technique = (typeof techniques)[number];

/**
 * c is softmax scale · log2 e, m the running maximum, l the row sum, α the factor of a rescale.
 * `normalise` is the row's finish: the division and the LSE.
 */
export const techniqueDefinitions: Readonly<Record<Technique, TechniqueDefinition>> = {
  'qk-accumulate': {
    emulated: "scores by the tensor cores' chain of fused sums",
    exact: 'scores q·k in fp64',
  },
  'scale-subtract': {
    emulated:
      'x = fma(s, c, offset − m·c) in fp32 with c rounded to fp32, at the fp32 score nearest s',
    exact: 'x = (s − m)·c + offset, with c in fp64',
  },
  'exp2-hardware': {
    emulated:
      "in the unit's columns p = ex2.approx.ftz: its relative error at the fp32 x nearest x",
    exact: 'p = 2^x in these columns',
  },
  'exp2-polynomial': {
    emulated:
      "in the polynomial's columns p by software: its relative error at the fp32 x nearest x",
    exact: 'p = 2^x in these columns',
  },
  'p-round': {
    emulated: "p rounded once to the input's format, for the product with V; l sums p itself",
    exact: 'P·V takes p itself',
  },
  rescale: {
    emulated: 'α = ex2.approx.ftz of fp32 (m − m′)·c, and the fp32 products of α with O and l',
    exact: 'α = 2^((m − m′)·c) and its products in fp64',
  },
  'pv-accumulate': {
    emulated:
      "O + P·V by the tensor cores' chain: its error on O rounded to fp32 and P to the format",
    exact: 'O + P·V in fp64',
  },
  'row-sum': {
    emulated:
      'four packed fp32 accumulators and their tree: the error on start and p rounded to fp32',
    exact: 'l + Σ p in fp64',
  },
  normalise: {
    emulated:
      "the row's finish: rcp.approx.ftz's relative error at the fp32 l nearest l and the fp32 product " +
      'with O; LSE = (m·c + (lg2.approx.ftz(l) − offset))·ln 2 in fp32, its error there',
    exact: 'O / l and LSE = (m·c + log2 l − offset)·ln 2 in fp64, with c in fp64',
  },
  'output-round': {
    emulated: "rounded once to the input's format",
    exact: 'not rounded',
  },
};

/** The techniques that are emulated; the others are exact. */
export type EmulatedTechniques = ReadonlySet<Technique>;
