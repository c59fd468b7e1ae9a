import type { Command } from 'commander';
import { collect } from './kernel-settings.js';

/** The problem options as commander hands them over; `problem-settings.ts` makes sense of them. */
export interface ProblemOptions {
  readonly scale?: string;
  readonly causal?: boolean;
  readonly window?: string;
  readonly softcap?: string;
  readonly layout?: string;
  readonly format?: readonly string[];
}

/** Adds the options that say what a problem file's q, k, v are to compute. */
export function addProblemOptions(command: Command): Command {
  return command
    .option('--scale <x>', "factor on Q·K (default: the file's, else 1/√d)")
    .option('--causal', 'causal mask, aligned to the bottom right')
    .option('--no-causal', "no causal mask, whatever the file's metadata says")
    .option('--window <left,right>', 'sliding window in keys, -1 for no limit on a side')
    .option('--softcap <x>', 'scores become x·tanh(score/x)')
    .option('--layout <layout>', 'order of the dimensions: bhsd (the default) or bshd')
    .option(
      '--format <tensor=format>',
      'format of a tensor whose dtype does not tell (repeatable)',
      collect,
    );
}
