import {
  areSameRanges,
  clipRanges,
  commonRanges,
  problemMask,
  rowPlaces,
  spanOf,
  type KeyRange,
  type Mask,
  type Problem,
  type ProblemShape,
} from '../../../problem/index.js';
import type { HypothesisFamily, SampleRow } from '../hypothesis.js';
import { predictWeighted, softmaxRow } from '../prediction.js';

interface MaskFault {
  readonly id: string;
  readonly statement: string;
  readonly mask: Mask;
}

const tileSizes = [16, 32, 64, 128, 256] as const;

/** A mask that differs from another in the ranges of each query only, by a given change. */
function changed(
  { ranges }: Mask,
  change: (ranges: readonly KeyRange[]) => readonly KeyRange[],
): Mask {
  return { ranges: (head, query) => change(ranges(head, query)) };
}

/** Ranges whose first one begins earlier; none if there are none. */
function beginningAt(ranges: readonly KeyRange[], begin: (first: number) => number) {
  return ranges.map((range, i) => (i === 0 ? { ...range, begin: begin(range.begin) } : range));
}

/** Ranges whose last one ends later; none if there are none. */
function endingAt(ranges: readonly KeyRange[], end: (last: number) => number) {
  const last = ranges.length - 1;
  return ranges.map((range, i) => (i === last ? { ...range, end: end(range.end) } : range));
}

function* causalFaults(problem: Problem, shape: ProblemShape): Generator<MaskFault> {
  const { keys } = shape;
  const placeOf = rowPlaces(problem, shape);
  const right = problem.window?.right ?? -1;
  const left = problem.window?.left ?? -1;
  const limited = (reach: number): Problem => ({
    ...problem,
    causal: false,
    window: { left, right: right >= 0 ? Math.min(right, reach) : reach },
  });
  const correct = problemMask(problem, shape);
  yield {
    id: 'causal-mask-missing',
    statement: 'the causal mask is missing',
    mask: problemMask({ ...problem, causal: false }, shape),
  };
  // A window to the right of the diagonal narrower than the fault hides it.
  if (right < 0 || right > 0)
    yield {
      id: 'causal-limit-late',
      statement: 'the causal limit is one key too far',
      mask: problemMask(limited(1), shape),
    };
  yield {
    id: 'causal-limit-early',
    statement: 'the causal limit is one key short: the diagonal is masked',
    mask: {
      ranges: (head, query) => {
        const place = placeOf(head, query);
        const diagonal = place.firstKey + place.query + place.keys - place.queries;
        return clipRanges(correct.ranges(head, query), 0, diagonal);
      },
    },
  };
  for (const size of tileSizes) {
    if (size >= keys) continue;
    yield {
      id: 'causal-limit-by-tile',
      statement: `the causal limit is rounded up to tiles of ${size} keys`,
      mask: changed(correct, (ranges) =>
        endingAt(ranges, (end) => Math.min(keys, Math.ceil(end / size) * size)),
      ),
    };
    yield {
      id: 'causal-limit-by-tile',
      statement: `the tile of ${size} keys on the causal diagonal is dropped`,
      mask: changed(correct, (ranges) =>
        clipRanges(ranges, 0, Math.floor(spanOf(ranges).end / size) * size),
      ),
    };
    yield {
      id: 'causal-limit-by-tile',
      statement: `the causal limit is ${size} keys too far`,
      mask: problemMask(limited(size), shape),
    };
  }
}

function* alignmentFaults(problem: Problem, shape: ProblemShape): Generator<MaskFault> {
  const { queries, keys } = shape;
  const { sequences, rows } = problem;
  if (!problem.causal && problem.window === null) return;
  const statement = 'the mask is aligned to the top left, not to the bottom right';
  const id = 'mask-aligned-top-left';
  if (sequences !== undefined) {
    if (sequences.every((one) => one.queries === one.keys)) return;
    // As many queries as keys put the first query on the first key.
    const square = sequences.map((one) => ({ ...one, queries: one.keys }));
    yield { id, statement, mask: problemMask({ ...problem, sequences: square }, shape) };
  } else if (rows === undefined && queries !== keys) {
    // Tensors over all keys have no more of them for it.
    const { q, k, v, scale, softcap, causal, window, prefix } = problem;
    const diagonal = { q, k, v, scale, softcap, causal, window, ...(prefix && { prefix }) };
    // As many queries as keys put the first query on the first key, and no key lies beyond the last.
    const most = Math.max(queries, keys);
    const ofDiagonal = problemMask(diagonal, { ...shape, queries: most, keys: most });
    const others = problemMask({ ...problem, causal: false, window: null }, shape);
    const ranges: Mask['ranges'] = (head, query) =>
      commonRanges(clipRanges(ofDiagonal.ranges(head, query), 0, keys), others.ranges(head, query));
    yield { id, statement, mask: { ranges } };
  }
}

function* windowFaults(problem: Problem, shape: ProblemShape): Generator<MaskFault> {
  const { window } = problem;
  if (window === null) return;
  const withWindow = (limits: Partial<typeof window>): Mask =>
    problemMask({ ...problem, window: { ...window, ...limits } }, shape);
  for (const side of ['left', 'right'] as const) {
    const reach = window[side];
    if (reach < 0 || (side === 'right' && problem.causal)) continue;
    yield {
      id: 'window-ignored',
      statement: `the window's ${side} limit is ignored`,
      mask: withWindow({ [side]: -1 }),
    };
    yield {
      id: 'window-limit',
      statement: `the window reaches one key too far to the ${side}`,
      mask: withWindow({ [side]: reach + 1 }),
    };
    if (reach > 0)
      yield {
        id: 'window-limit',
        statement: `the window is one key short on the ${side}`,
        mask: withWindow({ [side]: reach - 1 }),
      };
    for (const size of tileSizes) {
      if (size >= shape.keys || side === 'right') continue;
      const correct = problemMask(problem, shape);
      yield {
        id: 'window-limit-by-tile',
        statement: `the window's left limit is rounded down to tiles of ${size} keys`,
        mask: changed(correct, (ranges) =>
          beginningAt(ranges, (begin) => Math.floor(begin / size) * size),
        ),
      };
    }
  }
  if (window.left >= 0 && window.right >= 0 && !problem.causal)
    yield {
      id: 'window-ignored',
      statement: 'the window is ignored',
      mask: problemMask({ ...problem, window: null }, shape),
    };
}

function* maskFaults(problem: Problem, shape: ProblemShape): Generator<MaskFault> {
  const correct = problemMask(problem, shape);
  if (problem.causal) yield* causalFaults(problem, shape);
  else
    yield {
      id: 'causal-mask-unasked',
      statement: 'a causal mask is applied that the problem does not have',
      mask: problemMask({ ...problem, causal: true }, shape),
    };
  yield* alignmentFaults(problem, shape);
  yield* windowFaults(problem, shape);
  yield {
    id: 'first-key-dropped',
    statement: 'the first key that a query sees is dropped',
    mask: changed(correct, (ranges) => clipRanges(ranges, spanOf(ranges).begin + 1, shape.keys)),
  };
  yield {
    id: 'first-key-dropped',
    statement: 'key 0 is dropped',
    mask: changed(correct, (ranges) => clipRanges(ranges, 1, shape.keys)),
  };
  if (!problem.causal)
    yield {
      id: 'last-key-dropped',
      statement: 'the last key is dropped',
      mask: changed(correct, (ranges) => clipRanges(ranges, 0, shape.keys - 1)),
    };
  for (const size of tileSizes)
    if (shape.keys % size !== 0 && shape.keys > size)
      yield {
        id: 'last-tile-dropped',
        statement: `the last, partial tile of ${size} keys is dropped`,
        mask: changed(correct, (ranges) => clipRanges(ranges, 0, shape.keys - (shape.keys % size))),
      };
}

/** Faults in which keys a query sees. */
export const maskHypotheses: HypothesisFamily = function* ({ reader, shape }) {
  for (const { id, statement, mask } of maskFaults(reader.problem, shape)) {
    const predict = (row: SampleRow) => {
      const ranges = mask.ranges(row.head, row.query);
      if (areSameRanges(ranges, row.ranges)) return row.correct;
      const dots = reader.dots(row.row, row.kv);
      const scores = reader.maskedScores(row.row, ranges, (key) =>
        reader.score(dots[key], row.row, key),
      );
      return predictWeighted(row, softmaxRow(scores, reader.valuesOf(row.row, row.kv)));
    };
    yield { id, technique: null, statement, predict };
  }
};
