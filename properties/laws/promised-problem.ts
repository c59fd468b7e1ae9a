import { problemShape, type Problem } from '../../src/problem/index.js';
import { hasEmptyRows, sizeNames } from '../problems/index.js';
import { NotApplicable } from '../suite/not-applicable.js';
import type { ResolvedPromises } from '../suite/promises.js';
import { isWithinScoreLimit } from '../suite/score-limit.js';

/**
 * Whether a kernel promises to take a problem of such sizes, masks and scores: what a law makes of a
 * promised problem need not be one. Formats and scale are taken to be those of a promised problem.
 */
export function isPromised(problem: Problem, promises: ResolvedPromises): boolean {
  const shape = problemShape(problem);
  const { causal, window, softcap, groupedHeads, emptyRows, scoreLimit } = promises;
  const { sizes, groupSizes, multiples } = promises;
  return (
    (causal === true || problem.causal === (causal === 'only')) &&
    (window || problem.window === null) &&
    (softcap || problem.softcap === null) &&
    (groupedHeads || shape.groupSize === 1) &&
    (groupSizes?.includes(shape.groupSize) ?? true) &&
    (emptyRows || !hasEmptyRows(problem)) &&
    isWithinScoreLimit(problem, scoreLimit) &&
    sizeNames.every((name) => {
      const { min = 1, max = Infinity } = sizes[name] ?? {};
      const multiple = multiples[name] ?? 1;
      return min <= shape[name] && shape[name] <= max && shape[name] % multiple === 0;
    })
  );
}

/**
 * Holds a problem that a law made of another to be one that the kernel promises to take.
 * @throws NotApplicable
 */
export function requirePromised(problem: Problem, promises: ResolvedPromises): void {
  if (!isPromised(problem, promises))
    throw new NotApplicable('what it makes of the problem is not promised');
}
