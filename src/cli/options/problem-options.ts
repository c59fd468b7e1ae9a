import { optionRows, type ParsedOptions } from './option-rows.js';

/** What a command with a problem says of its argument. */
export const problemDescription = 'tensors q, k, v: .safetensors, .npz or a folder of .npy';

/** The options that say what a problem file's q, k, v are to compute; `problem-settings.ts` reads them. */
export const problemOptions = optionRows({
  scale: { argument: '<x>', description: "factor on Q·K (default: the file's, else 1/√d)" },
  causal: {
    description: 'causal mask, aligned to the bottom right',
    without: "no causal mask, whatever the file's metadata says",
  },
  window: {
    argument: '<left,right>',
    description: 'sliding window in keys, -1 for no limit on a side',
  },
  softcap: { argument: '<x>', description: 'scores become x·tanh(score/x)' },
  layout: {
    argument: '<layout>',
    description: 'order of the dimensions: bhsd (the default) or bshd',
    completes: 'layout',
  },
  format: {
    argument: '<tensor=format>',
    description: 'format of a tensor whose dtype does not tell (repeatable)',
    repeats: true,
    completes: 'tensor-format',
  },
});

/** The problem options as they are given. */
export type ProblemOptions = ParsedOptions<typeof problemOptions>;
