import { techniques, type Technique, type TechniqueDefinition } from '../techniques.js';

/** The techniques of FlashAttention-2's forward: all but a software exp2. */
export const fa2Techniques: readonly Technique[] = techniques.filter(
  (name) => name !== 'exp2-polynomial',
);

/** c is softmax scale · log2 e, m the running maximum, l the row sum, α the factor of a rescale. */
export const fa2TechniqueDefinitions: Readonly<
  Record<Exclude<Technique, 'exp2-polynomial'>, TechniqueDefinition>
> = {
  'qk-accumulate': {
    emulated: "scores by the tensor cores' chain of fused sums",
    exact: 'scores q·k in fp64',
  },
  'scale-subtract': {
    emulated:
      "x = s·c − m·c in fp32, rounded as the kernel's build does, at the fp32 score nearest s",
    exact: 'x = (s − m)·c, with c in fp64',
  },
  'exp2-hardware': {
    emulated: "p = exp2f, the unit's ex2.approx: its relative error at the fp32 x nearest x",
    exact: 'p = 2^x',
  },
  'p-round': {
    emulated: "p rounded once to the input's format, for the product with V; l sums p itself",
    exact: 'P·V takes p itself',
  },
  rescale: {
    emulated: 'α = exp2f of fp32 (m − m′)·c, and the fp32 products of α with O and l',
    exact: 'α = 2^((m − m′)·c) and its products in fp64',
  },
  'pv-accumulate': {
    emulated:
      "O + P·V by the tensor cores' chain: its error on O rounded to fp32 and P to the format",
    exact: 'O + P·V in fp64',
  },
  'row-sum': {
    emulated:
      'four threads a row, each one fp32 addition after the other, and their butterfly at the end: the ' +
      'error on sums and p rounded to fp32',
    exact: 'l + Σ p in fp64',
  },
  normalise: {
    emulated:
      "the row's finish: the error of 1 / l at the fp32 l nearest l and of the fp32 product with O; " +
      'LSE = m·scale + lg2.approx(l)·ln 2 in fp32, its error there',
    exact: 'O / l and LSE = (m·c + log2 l)·ln 2 in fp64, with c in fp64',
  },
  'output-round': {
    emulated: "rounded once to the input's format",
    exact: 'not rounded',
  },
};
