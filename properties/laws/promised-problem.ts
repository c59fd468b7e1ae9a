import type * as fc from 'fast-check';
import { decodeToFloat64, formats } from '../../src/formats/index.js';
import { problemShape, type Problem, type Tensor } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import {
  attentionProblem,
  hasEmptyRows,
  sizeNames,
  type ProblemConstraints,
} from '../problems/index.js';
import type { ProblemPromises, ScoreLimit } from './kernel-under-test.js';
import { NotApplicable } from './law.js';

/** Heads · queries · keys · dimensions at most: a run takes milliseconds. */
const problemElements = 2 ** 18;

/** What the promises leave of all problems. */
export function promisedConstraints(promises: ProblemPromises): ProblemConstraints {
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

/** Whether a promised scale is positive, as the problems have it. */
export function takesPositiveScales({ scales }: ProblemPromises): boolean {
  return scales.includes('default') || scales.includes('odd');
}

/** The largest Euclidean norm of the last dimension; special values count as 0. */
function largestNorm({ data, format, shape }: Tensor): number {
  const values = decodeToFloat64(data, formats[format]);
  const dim = shape.at(-1) ?? 0;
  let largest = 0;
  for (let first = 0; first < values.length; first += dim) {
    let sum = 0;
    for (let i = first; i < first + dim; i++) {
      const x = values[i];
      if (Number.isFinite(x)) sum += x * x;
    }
    largest = Math.max(largest, Math.sqrt(sum));
  }
  return largest;
}

/** Whether no score of a problem can be beyond the limit: by the norms of Q and K. */
export function isWithinScoreLimit(problem: Problem, { raw, scaled }: ScoreLimit): boolean {
  const largest = largestNorm(problem.q) * largestNorm(problem.k);
  return largest <= raw && largest * Math.abs(problem.scale) <= scaled;
}

/**
 * Whether a kernel promises to take a problem of such sizes, masks and scores: what a law makes of a
 * promised problem need not be one. Formats and scale are taken to be those of a promised problem.
 */
export function isPromised(problem: Problem, promises: ProblemPromises): boolean {
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
export function requirePromised(problem: Problem, promises: ProblemPromises): void {
  if (!isPromised(problem, promises))
    throw new NotApplicable('what it makes of the problem is not promised');
}
