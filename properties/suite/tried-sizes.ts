import type { Problem, ProblemShape } from '../../src/problem/index.js';

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

/** Numbers in Q, K and V: how much there is to read of a problem. */
export function problemSize({ q, k, v }: Problem): number {
  return q.data.length + k.data.length + v.data.length;
}

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
