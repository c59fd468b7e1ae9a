import {
  visibleKeys,
  type KeyRange,
  type Problem,
  type ProblemShape,
} from '../../../problem/index.js';
import type { HypothesisFamily, SampleRow } from '../hypothesis.js';
import { predictWeighted, softmaxRow } from '../prediction.js';

/** The keys that a faulty mask leaves visible to one query; empty when begin ≥ end. */
type FaultyMask = (query: number) => KeyRange;

interface MaskFault {
  readonly id: string;
  readonly statement: string;
  readonly mask: FaultyMask;
}

const tileSizes = [16, 32, 64, 128, 256] as const;

const masksOf = (problem: Problem, shape: ProblemShape): FaultyMask => {
  return (query) => visibleKeys(problem, shape, query);
};

function* causalFaults(problem: Problem, shape: ProblemShape): Generator<MaskFault> {
  const { queries, keys } = shape;
  const right = problem.window?.right ?? -1;
  const left = problem.window?.left ?? -1;
  const limited = (reach: number): Problem => ({
    ...problem,
    causal: false,
    window: { left, right: right >= 0 ? Math.min(right, reach) : reach },
  });
  const correct = masksOf(problem, shape);
  yield {
    id: 'causal-mask-missing',
    statement: 'the causal mask is missing',
    mask: masksOf({ ...problem, causal: false }, shape),
  };
  // A window to the right of the diagonal narrower than the fault hides it.
  if (right < 0 || right > 0)
    yield {
      id: 'causal-limit-late',
      statement: 'the causal limit is one key too far',
      mask: masksOf(limited(1), shape),
    };
  yield {
    id: 'causal-limit-early',
    statement: 'the causal limit is one key short: the diagonal is masked',
    mask: (query) => {
      const { begin, end } = correct(query);
      return { begin, end: Math.min(end, query + keys - queries) };
    },
  };
  for (const size of tileSizes) {
    if (size >= keys) continue;
    yield {
      id: 'causal-limit-by-tile',
      statement: `the causal limit is rounded up to tiles of ${size} keys`,
      mask: (query) => {
        const { begin, end } = correct(query);
        return { begin, end: Math.min(keys, Math.ceil(end / size) * size) };
      },
    };
    yield {
      id: 'causal-limit-by-tile',
      statement: `the tile of ${size} keys on the causal diagonal is dropped`,
      mask: (query) => {
        const { begin, end } = correct(query);
        return { begin, end: Math.floor(end / size) * size };
      },
    };
    yield {
      id: 'causal-limit-by-tile',
      statement: `the causal limit is ${size} keys too far`,
      mask: masksOf(limited(size), shape),
    };
  }
}

function* alignmentFaults(problem: Problem, shape: ProblemShape): Generator<MaskFault> {
  const { queries, keys } = shape;
  if (queries === keys || (!problem.causal && problem.window === null)) return;
  yield {
    id: 'mask-aligned-top-left',
    statement: 'the mask is aligned to the top left, not to the bottom right',
    mask: (query) => visibleKeys(problem, { ...shape, keys: queries }, query),
  };
}

function* windowFaults(problem: Problem, shape: ProblemShape): Generator<MaskFault> {
  const { window } = problem;
  if (window === null) return;
  const withWindow = (changed: Partial<typeof window>): FaultyMask => {
    return masksOf({ ...problem, window: { ...window, ...changed } }, shape);
  };
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
      const correct = masksOf(problem, shape);
      yield {
        id: 'window-limit-by-tile',
        statement: `the window's left limit is rounded down to tiles of ${size} keys`,
        mask: (query) => {
          const { begin, end } = correct(query);
          return { begin: Math.floor(begin / size) * size, end };
        },
      };
    }
  }
  if (window.left >= 0 && window.right >= 0 && !problem.causal)
    yield {
      id: 'window-ignored',
      statement: 'the window is ignored',
      mask: masksOf({ ...problem, window: null }, shape),
    };
}

function* maskFaults(problem: Problem, shape: ProblemShape): Generator<MaskFault> {
  const correct = masksOf(problem, shape);
  if (problem.causal) yield* causalFaults(problem, shape);
  else
    yield {
      id: 'causal-mask-unasked',
      statement: 'a causal mask is applied that the problem does not have',
      mask: masksOf({ ...problem, causal: true }, shape),
    };
  yield* alignmentFaults(problem, shape);
  yield* windowFaults(problem, shape);
  yield {
    id: 'first-key-dropped',
    statement: 'the first key that a query sees is dropped',
    mask: (query) => {
      const { begin, end } = correct(query);
      return { begin: begin + 1, end };
    },
  };
  yield {
    id: 'first-key-dropped',
    statement: 'key 0 is dropped',
    mask: (query) => {
      const { begin, end } = correct(query);
      return { begin: Math.max(begin, 1), end };
    },
  };
  if (!problem.causal)
    yield {
      id: 'last-key-dropped',
      statement: 'the last key is dropped',
      mask: (query) => {
        const { begin, end } = correct(query);
        return { begin, end: Math.min(end, shape.keys - 1) };
      },
    };
  for (const size of tileSizes)
    if (shape.keys % size !== 0 && shape.keys > size)
      yield {
        id: 'last-tile-dropped',
        statement: `the last, partial tile of ${size} keys is dropped`,
        mask: (query) => {
          const { begin, end } = correct(query);
          return { begin, end: Math.min(end, shape.keys - (shape.keys % size)) };
        },
      };
}

/** Faults in which keys a query sees. */
export const maskHypotheses: HypothesisFamily = function* ({ reader, shape }) {
  for (const { id, statement, mask } of maskFaults(reader.problem, shape)) {
    const predict = (row: SampleRow) => {
      const { begin, end } = mask(row.query);
      if (begin === row.range.begin && end === row.range.end) return row.correct;
      const scores = reader
        .dots(row.row, row.kv)
        .map((dot, j) => (j >= begin && j < end ? reader.score(dot) : -Infinity));
      return predictWeighted(row, softmaxRow(scores, reader.values(row.kv)));
    };
    yield { id, technique: null, statement, predict };
  }
};
