import type { Technique, TechniqueDefinition } from '../../techniques.js';

/** The techniques that are alike in every online softmax on tensor cores; a kernel defines its others. */
export const commonDefinitions = {
  'qk-accumulate': {
    emulated: "scores by the tensor cores' chain of fused sums",
    exact: 'scores q·k in fp64',
  },
  'p-round': {
    emulated: "p rounded once to the input's format, for the product with V; l sums p itself",
    exact: 'P·V takes p itself',
  },
  'pv-accumulate': {
    emulated:
      "O + P·V by the tensor cores' chain: its error on O rounded to fp32 and P to the format",
    exact: 'O + P·V in fp64',
  },
  'output-round': {
    emulated: "rounded once to the input's format",
    exact: 'not rounded',
  },
} as const satisfies Partial<Record<Technique, TechniqueDefinition>>;
