import type { OptionRow } from './option-rows.js';

/**
 * What the help of audit, bound and check says of --premise. The names stand here so that showing help
 * loads no bounds; test/cli/premises.test.ts holds them to the vocabulary.
 */
export const premiseHelp = `
Premises, as name=value: what a kernel does otherwise than any correct one.
  scores, weights, partials    a format, or input for that of Q
  qkAccumulator, pvAccumulator fp64, fp32, tf32, fp16, bf16
  scale                        scores, folded-log2e, q-after-rounding,
                               q-before-rounding, root-of-both
  rowSum                       before-rounding, after-rounding
  outputRounding               nearest, stochastic, truncated
  maximum                      row, group, none
  exponential                  correctly-rounded, hardware, or its error
  factors                      hardware, as-weights
  scoreLimit                   a number
Presets: fused (the default), eager, torch-math, fp16-accumulate, fa4-fp8,
polynomial. docs/auditing.md says when to declare what.
`;

/** --premise, which `premiseHelp` explains. */
export const premiseOption = {
  argument: '<name=value>',
  description: 'what the kernel does otherwise than any (repeatable; below)',
  repeats: true,
  completes: 'premise',
} as const satisfies OptionRow;
