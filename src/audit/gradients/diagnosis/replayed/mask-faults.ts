import {
  clipRanges,
  problemMask,
  rowPlaces,
  type FeatureName,
  type Mask,
  type Problem,
  type ProblemShape,
} from '../../../../problem/index.js';
import type { ReplayedFault } from './replayed-fault.js';

/** Masks that a backward pass may leave out, in words. */
const maskNames = {
  mask: 'the mask',
  segments: 'the segments',
  blockMask: 'the block mask',
  keyLists: 'the lists of keys',
  prefix: 'the prefix',
  sequences: 'the borders of packed sequences',
} as const satisfies Partial<Record<FeatureName, string>>;

/** A problem without some of its features. */
export function without(problem: Problem, names: readonly (keyof Problem)[]): Problem {
  const kept = Object.entries(problem).filter(([name]) => !names.some((one) => one === name));
  return Object.fromEntries(kept) as unknown as Problem;
}

/** Distances from the diagonal within which a query sees keys; null for no limit on that side. */
interface Band {
  readonly left: number | null;
  readonly right: number | null;
}

/** The band that a problem's causal mask and window leave to queries. */
function bandOf({ causal, window }: Problem): Band {
  const right = window === null || window.right < 0 ? null : window.right;
  return {
    left: window === null || window.left < 0 ? null : window.left,
    right: causal ? 0 : right,
  };
}

/** All other masks of a problem, and a band around a diagonal. */
function bandRanges(
  problem: Problem,
  shape: ProblemShape,
  { left, right }: Band,
  isTopLeft: boolean,
): Mask['ranges'] {
  const whole = problemMask({ ...problem, causal: false, window: null }, shape);
  const placeOf = rowPlaces(problem, shape);
  return (head, query) => {
    const place = placeOf(head, query);
    const corner = isTopLeft ? 0 : place.keys - place.queries;
    const diagonal = place.firstKey + place.query + corner;
    const begin = left === null ? -Infinity : diagonal - left;
    const end = right === null ? Infinity : diagonal + right + 1;
    return clipRanges(whole.ranges(head, query), begin, end);
  };
}

const inBackward = 'in the backward pass, so that its P is not that of the forward';

/** Masks that a backward pass may leave out. */
function* leftOut(problem: Problem): Generator<readonly [words: string, masks: Problem]> {
  const { causal, window } = problem;
  if (causal) yield ['the causal mask', { ...problem, causal: false }];
  if (window !== null) yield ['the window', { ...problem, window: null }];
  if (causal && window !== null)
    yield ['causal mask and window', { ...problem, causal: false, window: null }];
  for (const [name, words] of Object.entries(maskNames))
    if (problem[name as keyof typeof maskNames] !== undefined)
      yield [words, without(problem, [name as keyof typeof maskNames])];
}

/** Backward passes whose mask is not that of the forward. */
export function* maskFaults(problem: Problem, shape: ProblemShape): Generator<ReplayedFault> {
  for (const [words, masks] of leftOut(problem))
    yield {
      id: 'mask-ignored',
      sentence: `${words} is left out ${inBackward}`,
      change: { ranges: problemMask(masks, shape).ranges },
    };
  const band = bandOf(problem);
  const { left, right } = band;
  if ((left === null && right === null) || problem.prefix !== undefined) return;
  yield {
    id: 'mask-top-left',
    sentence: `masks are aligned to the first query and key ${inBackward}, which aligns them to the last`,
    change: { ranges: bandRanges(problem, shape, band, true) },
  };
  for (const by of [1, -1, 2, -2]) {
    const size = Math.abs(by);
    const id = size === 1 ? 'mask-off-by-one' : 'mask-off-by-two';
    const words = `${size === 1 ? 'one key' : 'two keys'} ${by > 0 ? 'more' : size === 1 ? 'less' : 'fewer'}`;
    if (right !== null)
      yield {
        id,
        sentence: `queries see ${words} on the right ${inBackward}`,
        change: { ranges: bandRanges(problem, shape, { left, right: right + by }, false) },
      };
    if (left !== null)
      yield {
        id,
        sentence: `queries see ${words} on the left ${inBackward}`,
        change: { ranges: bandRanges(problem, shape, { left: left + by, right }, false) },
      };
  }
}
