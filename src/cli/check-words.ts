import type { CheckCommandOptions } from './check.js';
import { wordsOf, type OptionWord } from './option-words.js';

/** The options that say which kernel it is. */
const kernelOptions: readonly OptionWord<CheckCommandOptions>[] = [
  ['--kernel', ({ kernel }) => kernel],
  ['--exec', ({ exec }) => exec],
  ['--as', ({ as }) => as],
  ['--premise', ({ premise }) => premise],
  ['--set', ({ set }) => set],
  ['--variant', ({ variant }) => variant],
];

/** The options that say what it promises, and how long it may take. */
const promiseOptions: readonly OptionWord<CheckCommandOptions>[] = [
  ['--timeout', ({ timeout }) => (timeout === '10' ? undefined : timeout)],
  ['--promises', ({ promises }) => promises],
  ['--formats', ({ formats }) => formats],
  ['--dims', ({ dims }) => dims],
  ['--group-sizes', ({ groupSizes }) => groupSizes],
  ['--multiples', ({ multiples }) => multiples],
  ['--causal-only', ({ causalOnly }) => causalOnly],
  ['--causal', ({ causal }) => causal],
  ['--window', ({ window }) => window],
  ['--softcap', ({ softcap }) => softcap],
  ['--grouped-heads', ({ groupedHeads }) => groupedHeads],
  ['--empty-rows', ({ emptyRows }) => emptyRows],
  ['--special-values', ({ specialValues }) => specialValues],
  ['--needs-lse', ({ needsLse }) => needsLse],
  ['--block-keys', ({ blockKeys }) => blockKeys],
  ['--rescale-threshold', ({ rescaleThreshold }) => rescaleThreshold],
  ['--promise', ({ promise }) => promise],
];

/** The words of the command line that name the kernel. */
export function kernelWords(options: CheckCommandOptions): string[] {
  return wordsOf(options, kernelOptions);
}

/** The words of the command that tries a saved problem again, on the same kernel and promises. */
export function replayWords(options: CheckCommandOptions, path: string): string[] {
  const promised = wordsOf(options, promiseOptions);
  return ['flashproof', 'check', ...kernelWords(options), ...promised, '--replay', path];
}
