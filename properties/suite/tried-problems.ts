import { formats, round, type FormatName } from '../../src/formats/index.js';
import type { ProblemShape } from '../../src/problem/index.js';
import type { KernelRun } from '../laws/index.js';

/** The sizes of a problem that bugs depend on. */
export const triedSizeNames = [
  'batch',
  'heads',
  'groupSize',
  'queries',
  'keys',
  'qkDim',
  'vDim',
] as const satisfies readonly (keyof ProblemShape)[];

/** The largest of each size among the problems that a kernel ran on, not all in one problem. */
export type TriedSizes = Readonly<Record<(typeof triedSizeNames)[number], number>>;

/** The largest of each size of some problems, on top of those known before; null for no problem. */
export function largestSizes(
  shapes: readonly TriedSizes[],
  before: TriedSizes | null = null,
): TriedSizes | null {
  const all = before === null ? shapes : [before, ...shapes];
  if (all.length === 0) return null;
  const entries = triedSizeNames.map((name) => [name, Math.max(...all.map((of) => of[name]))]);
  return Object.fromEntries(entries) as TriedSizes;
}

/** Formats of inputs whose kernels write outputs in the same; those of 8 bits write 16. */
const ownOutput: readonly FormatName[] = ['bf16', 'fp16'];

/** The format of a run's inputs, if its output has finite numbers that this format has not; else null. */
export function widenedFrom({ problem, outputs, out }: KernelRun): FormatName | null {
  const { format } = problem.q;
  if (!ownOutput.includes(format) || outputs.out.format === format) return null;
  const isWider = out.some((x) => Number.isFinite(x) && round(formats[format], x) !== x);
  return isWider ? format : null;
}

/**
 * What is to be said of a kernel whose outputs are finer than its inputs' formats, which is right, but
 * often not what was meant to be checked: a line for each format.
 */
export function widenedNotes(widened: Iterable<FormatName>): string[] {
  return [...new Set(widened)]
    .sort()
    .map(
      (format) =>
        `outputs for ${format} inputs have digits that ${format} has not; if an adapter widens the inputs, what was checked is the wider kernel behind it, not one in ${format}`,
    );
}
