import * as fc from 'fast-check';
import type { Problem } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import {
  attentionProblem,
  type ProblemConstraints,
  type RegimeName,
  type SpecialKind,
  type Tiling,
} from '../problems/index.js';
import type { Law, LawCase } from './law.js';
import { productionSizes, type ProductionAspect } from './production-sizes.js';
import type { ResolvedPromises } from './promises.js';

/** Heads · queries · keys · dimensions at most: a run takes milliseconds. */
const problemElements = 2 ** 18;

/** Special values are planted once in this many runs of laws that admit them. */
export const specialsOneIn = 8;

/** What the promises leave of all problems. */
export function promisedConstraints(promises: ResolvedPromises): ProblemConstraints {
  const { formats, causal, window, softcap, groupedHeads, emptyRows } = promises;
  const { scales, dims, sizes, groupSizes, multiples } = promises;
  return {
    formats,
    scales,
    multiples,
    ...sizes,
    ...(groupSizes === null ? {} : { groupSizes }),
    ...(causal === true ? {} : { causal: causal === 'only' }),
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
  /** What of the problem is as large as in production; null for nothing. */
  readonly production: ProductionAspect | null;
}

/**
 * Problems of some constraints, drawn at other sizes and shrunk by the constraints alone. Where such sizes
 * leave a regime no room, keys and dimensions are as many as it needs, or the sizes are as usual.
 */
export function drawnAt(
  constraints: ProblemConstraints,
  large: ProblemConstraints | null,
): fc.Arbitrary<Problem> {
  if (large === null) return attentionProblem(constraints);
  const { keys, qkDim } = constraints;
  for (const needed of [{}, { keys, qkDim }])
    try {
      return attentionProblem(constraints, { ...constraints, ...large, ...needed });
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
    }
  return attentionProblem(constraints);
}

/**
 * The cases of a law: problems in a regime that the promises admit, and a choice; both shrink.
 * @throws RequestError for promises that leave no problem
 */
export function lawCases(
  law: Law,
  promises: ResolvedPromises,
  { regime, specials, tiling, production }: DrawnFrom,
): fc.Arbitrary<LawCase> {
  const large = production === null ? null : productionSizes(promises, production);
  const problem =
    law.problems?.(promises, large) ??
    drawnAt(
      {
        ...promisedConstraints(promises),
        ...law.constraints,
        regimes: [regime],
        specialValues: specials,
        tiling,
      },
      large,
    );
  const choice = fc.noBias(fc.integer({ min: 0, max: law.choices - 1 }));
  return fc.record({ problem, choice });
}
