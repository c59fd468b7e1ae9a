import * as fc from 'fast-check';
import { decodeTensor, formats, type NumberFormat } from '../../src/formats/index.js';
import { type Problem, problemShape, type Tensor } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import {
  attentionProblem,
  decodeProblem,
  encodeProblem,
  fewestElements,
  gradientProblem,
  hasEmptyRows,
  hidingKinds,
  storageKinds,
  takesFeatures,
  type FeatureKind,
  type GradientProblem,
  type PlainProblem,
  type ProblemConstraints,
  randomValues,
  resolveConstraints,
  type RandomValues,
  sizeNames,
} from '../problems/index.js';
import type { ProblemPromises, ScoreLimit } from './kernel-under-test.js';
import { NotApplicable, type Law } from './law.js';

/**
 * The largest product of heads, queries, keys and dimensions, where the promised sizes are not larger at least: a
 * run takes milliseconds.
 */
const problemElements = 2 ** 18;

/** The promised features that the problems of a law may have. */
export function admittedFeatures(
  { without = [] }: Pick<Law, 'without'>,
  { features }: Pick<ProblemPromises, 'features'>,
): readonly FeatureKind[] {
  // Of sequences a law says the same, however they lie in memory.
  const refused = without.includes('packed') ? [...without, ...storageKinds] : without;
  return features.filter((kind) => !refused.includes(kind));
}

/** Whether some promised problems have keys that a query does not see. */
export function takesMasks({ causal, window, features }: ProblemPromises): boolean {
  return causal !== false || window || features.some((kind) => hidingKinds.includes(kind));
}

/** Constraints that restrict problems to the promised ones. */
export function promisedConstraints(promises: ProblemPromises): ProblemConstraints {
  const { formats, causal, window, softcap, groupedHeads, emptyRows } = promises;
  const { scales, dims, sizes, groupSizes, multiples, features } = promises;
  const promised = { ...sizes, dims: dims ?? undefined, groupSizes: groupSizes ?? undefined };
  const least = fewestElements(resolveConstraints({ ...promised, multiples }));
  return {
    formats,
    scales,
    multiples,
    features,
    ...sizes,
    ...(groupSizes === null ? {} : { groupSizes }),
    ...(causal === true ? {} : { causal: causal === 'only' }),
    ...(window ? {} : { window: false }),
    ...(softcap ? {} : { softcap: false }),
    ...(groupedHeads ? {} : { groupSize: { max: 1 } }),
    ...(emptyRows ? {} : { emptyRows: false }),
    ...(dims === null ? {} : { dims }),
    maximumElements: Math.max(problemElements, least),
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
  return atSizes(attentionProblem, constraints, large);
}

/** Problems with the gradient of their output, drawn in the same way. */
export function gradientsDrawnAt(
  constraints: ProblemConstraints,
  large: ProblemConstraints | null,
): fc.Arbitrary<GradientProblem> {
  return atSizes(gradientProblem, constraints, large);
}

function atSizes<T>(
  arbitrary: (constraints: ProblemConstraints, drawn?: ProblemConstraints) => fc.Arbitrary<T>,
  constraints: ProblemConstraints,
  large: ProblemConstraints | null,
): fc.Arbitrary<T> {
  if (large === null) return arbitrary(constraints);
  const { keys, qkDim } = constraints;
  for (const needed of [{}, { keys, qkDim }])
    try {
      return arbitrary(constraints, { ...constraints, ...large, ...needed });
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
    }
  return arbitrary(constraints);
}

/** Whether a promised scale is positive, as the problems have it. */
export function takesPositiveScales({ scales }: ProblemPromises): boolean {
  return scales.includes('default') || scales.includes('odd');
}

/** The largest Euclidean norm of the last dimension; special values count as 0. */
function largestNorm(tensor: Tensor): number {
  const values = decodeTensor(tensor);
  const dim = tensor.shape.at(-1) ?? 0;
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
 * Whether a kernel promises to take a problem of such sizes, masks and scores: a law may transform a
 * promised problem into one that is not. Formats and scale are assumed to be those of a promised
 * problem.
 */
export function isPromised(problem: Problem, promises: ProblemPromises): boolean {
  const shape = problemShape(problem);
  const { causal, window, softcap, groupedHeads, emptyRows, scoreLimit } = promises;
  const { sizes, groupSizes, multiples, features } = promises;
  return (
    (causal === true || problem.causal === (causal === 'only')) &&
    (window || problem.window === null) &&
    (softcap || problem.softcap === null) &&
    takesFeatures(problem, features) &&
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
 * Requires that the kernel promises to take a problem that a law made from another.
 * @throws NotApplicable
 */
export function requirePromised(problem: Problem, promises: ProblemPromises): void {
  if (!isPromised(problem, promises))
    throw new NotApplicable('what it makes of the problem is not promised');
}

/** The problem to draw values for, with its shape, masks and scale. */
interface ValuedRequest {
  readonly plain: PlainProblem;
  /** Format of Q, K and V. */
  readonly format: NumberFormat;
  readonly random: RandomValues;
  readonly promises: ProblemPromises;
}

/** The values of a problem, and a scale in place of its own. */
export type ProblemValuer = (
  request: ValuedRequest,
) => Pick<PlainProblem, 'values'> & Partial<Pick<PlainProblem, 'scale'>>;

/**
 * Problems in the sizes, formats and masks that are promised, with values that a law makes for them,
 * the same for the same random numbers. They shrink in shape and masks, with values made anew.
 * @param constraints beyond the promises
 * @param drawn sizes that they are drawn at, in place of all that the constraints allow; null for none
 */
export function valuedProblem(
  promises: ProblemPromises,
  constraints: ProblemConstraints,
  valuer: ProblemValuer,
  drawn: ProblemConstraints | null = null,
): fc.Arbitrary<Problem> {
  // Values play no part: zeros leave nothing in them to shrink.
  const frame = drawnAt(
    { ...promisedConstraints(promises), ...constraints, regimes: ['zeros'] },
    drawn,
  );
  const seed = fc.noShrink(fc.noBias(fc.integer({ min: 0, max: 2 ** 31 - 1 })));
  return fc.tuple(frame, seed).map(([problem, from]) => {
    const plain = decodeProblem(problem);
    const format = formats[plain.formats.q];
    const random = randomValues(from);
    return encodeProblem({ ...plain, ...valuer({ plain, format, random, promises }) });
  });
}

/** An array of the size of one of a problem's tensors, from the place of each row and column. */
export function fillRows(
  heads: number,
  rows: number,
  columns: number,
  value: (head: number, row: number, column: number) => number,
): Float64Array {
  const values = new Float64Array(heads * rows * columns);
  let at = 0;
  for (let head = 0; head < heads; head++)
    for (let row = 0; row < rows; row++)
      for (let column = 0; column < columns; column++) values[at++] = value(head, row, column);
  return values;
}
