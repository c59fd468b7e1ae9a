import * as fc from 'fast-check';
import type { SpecialKind } from '../problem-constraints.js';
import { attentionProblem } from '../problem-arbitrary.js';
import type { ProblemConstraints } from '../problem-constraints.js';
import type { RegimeName } from '../regimes/index.js';
import type { Tiling } from '../tiling.js';
import type { Law, LawCase } from './law.js';
import type { ResolvedPromises } from './promises.js';

/** Heads · queries · keys · dimensions at most: a run takes milliseconds. */
const problemElements = 2 ** 18;

/** Special values are planted once in this many runs of laws that admit them. */
export const specialsOneIn = 8;

/** What the promises leave of all problems. */
export function promisedConstraints(promises: ResolvedPromises): ProblemConstraints {
  const { formats, causal, window, softcap, groupedHeads, emptyRows, scales, dims, sizes } =
    promises;
  return {
    ...{ formats, scales },
    ...sizes,
    ...(causal ? {} : { causal: false }),
    ...(window ? {} : { window: false }),
    ...(softcap ? {} : { softcap: false }),
    ...(groupedHeads ? {} : { groupSize: { max: 1 } }),
    ...(emptyRows ? {} : { emptyRows: false }),
    ...(dims === null ? {} : { dims }),
    maximumElements: problemElements,
  };
}

/** Where the problems of a case come from. */
export interface DrawnFrom {
  readonly regime: RegimeName;
  /** Special values to plant. */
  readonly specials: readonly SpecialKind[];
  /** What regimes that depend on blocks of keys aim at. */
  readonly tiling: Tiling;
}

/**
 * The cases of a law: problems in a regime that the promises admit, and a choice; both shrink.
 * @throws RequestError for promises that leave no problem
 */
export function lawCases(
  law: Law,
  promises: ResolvedPromises,
  { regime, specials, tiling }: DrawnFrom,
): fc.Arbitrary<LawCase> {
  const problem =
    law.problems?.(promises) ??
    attentionProblem({
      ...promisedConstraints(promises),
      ...law.constraints,
      regimes: [regime],
      specialValues: specials,
      tiling,
    });
  const choice = fc.noBias(fc.integer({ min: 0, max: law.choices - 1 }));
  return fc.record({ problem, choice });
}
