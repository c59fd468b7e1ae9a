import type { LawProgress } from './law-progress.js';
import type { PlannedLaw } from './plan-check.js';

/**
 * What became of a law: it holds on all problems that it was tried on, at least one; it is violated; it
 * was skipped, since the kernel does not promise it or it says nothing of such a kernel; or it was to be
 * tried and never was.
 */
export type LawStatus = 'holds' | 'violated' | 'skipped' | 'untried';

/** How far a law came. */
type LawCounts = Pick<LawProgress, 'runs' | 'unsupported' | 'refusal'>;

/** Why a law was not tried whose first problem was never reached. */
export const neverReached = 'the check ended before its first problem';

/** What became of a law, on how many problems it was tried, and why on none. */
export interface LawOutcome {
  readonly status: LawStatus;
  readonly tried: number;
  /** Null where it was tried. */
  readonly skipped: string | null;
}

/**
 * What became of a law.
 * @param unreached why its first problem was not reached, where it was not
 */
export function lawOutcome(
  { skipped, isPromised }: Pick<PlannedLaw, 'skipped' | 'isPromised'>,
  { runs, unsupported, refusal }: LawCounts,
  isViolated: boolean,
  unreached: string = neverReached,
): LawOutcome {
  const tried = runs - unsupported;
  if (isViolated) return { status: 'violated', tried, skipped: null };
  if (tried > 0) return { status: 'holds', tried, skipped: null };
  const refused = runs > 0 ? `none of its problems could be tried: ${refusal}` : unreached;
  return { status: isPromised ? 'untried' : 'skipped', tried, skipped: skipped ?? refused };
}
