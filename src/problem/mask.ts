import { RequestError } from '../request-error.js';
import { type Problem, problemShape, type ProblemShape } from './problem.js';

/** Keys begin ≤ j < end. */
export interface KeyRange {
  readonly begin: number;
  readonly end: number;
}

/** Which keys each query sees. */
export interface Mask {
  /**
   * The keys that a query sees: ranges in ascending order, disjoint, none of them empty; no range for a
   * query that sees nothing.
   * @param head counted over [batch, heads]
   */
  readonly ranges: (head: number, query: number) => readonly KeyRange[];
}

const noKeys: readonly KeyRange[] = [];

/**
 * The mask of a problem: causal and window, both aligned to the bottom right (the last query sits on the
 * last key). Of these a query sees one range at most, in every head the same.
 * @throws RequestError as `problemShape`, where no shape is given
 */
export function problemMask(problem: Problem, shape: ProblemShape = problemShape(problem)): Mask {
  return {
    ranges: (_head, query) => {
      const range = diagonalRange(problem, shape, query);
      return range.begin < range.end ? [range] : noKeys;
    },
  };
}

/** What causal and window masks leave, aligned to the bottom right; an empty range has begin = end. */
function diagonalRange(
  { causal, window }: Problem,
  { keys, queries }: ProblemShape,
  query: number,
): KeyRange {
  const diagonal = query + keys - queries;
  const { left, right } = window ?? { left: -1, right: -1 };
  let begin = 0;
  let end = keys;
  if (causal) end = Math.min(end, diagonal + 1);
  if (right >= 0) end = Math.min(end, diagonal + right + 1);
  if (left >= 0) begin = Math.max(begin, diagonal - left);
  end = Math.max(end, 0);
  return begin < end ? { begin, end } : { begin: end, end };
}

/** How many keys some ranges have. */
export function countKeys(ranges: readonly KeyRange[]): number {
  return ranges.reduce((count, { begin, end }) => count + end - begin, 0);
}

/** From the first key of some ranges to behind their last; begin = end = 0 without any. */
export function spanOf(ranges: readonly KeyRange[]): KeyRange {
  return ranges.length === 0
    ? { begin: 0, end: 0 }
    : { begin: ranges[0].begin, end: ranges[ranges.length - 1].end };
}

/** The part of some ranges within begin ≤ key < end. */
export function clipRanges(
  ranges: readonly KeyRange[],
  begin: number,
  end: number,
): readonly KeyRange[] {
  return ranges
    .filter((range) => range.begin < end && begin < range.end)
    .map((range) => ({ begin: Math.max(range.begin, begin), end: Math.min(range.end, end) }));
}

/** Whether two lists of ranges are the same, range by range. */
export function areSameRanges(a: readonly KeyRange[], b: readonly KeyRange[]): boolean {
  return (
    a.length === b.length &&
    a.every(({ begin, end }, i) => begin === b[i].begin && end === b[i].end)
  );
}

/** Whether some ranges have a key. */
export function hasKey(ranges: readonly KeyRange[], key: number): boolean {
  return ranges.some(({ begin, end }) => begin <= key && key < end);
}

/** The keys of some ranges, ascending. */
export function* keysOf(ranges: readonly KeyRange[]): Generator<number> {
  for (const { begin, end } of ranges) for (let key = begin; key < end; key++) yield key;
}

/**
 * The range of keys that query `row` sees in every head, for kernels whose arithmetic knows one range a
 * query. An empty range has begin = end.
 * @throws RequestError where the query sees several ranges
 */
export function visibleKeys(problem: Problem, shape: ProblemShape, row: number): KeyRange {
  const ranges = problemMask(problem, shape).ranges(0, row);
  if (ranges.length > 1)
    throw new RequestError(
      `query ${row} sees ${ranges.length} ranges of keys; this kernel takes masks of one range`,
    );
  return ranges.length === 1 ? ranges[0] : diagonalRange(problem, shape, row);
}
