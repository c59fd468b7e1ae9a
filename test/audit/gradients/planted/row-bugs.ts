import { clipRanges, problemMask, type Problem } from '../../../../src/problem/index.js';
import { decodeTensor, formats, round } from '../../../../src/formats/index.js';
import {
  around,
  changedProblem,
  inRows,
  ofDelta,
  ofLse,
  type PlantedBug,
  type ProblemChange,
  type StepChange,
} from './planted-bug.js';

const half = Math.fround(0.5);

/** D of something else. */
const deltas: Readonly<Record<string, PlantedBug>> = {
  'no D': { change: ofDelta(() => 0), causes: ['delta-missing'] },
  'no D, in fp32': { on: 'fp32', change: ofDelta(() => 0), causes: ['delta-missing'] },
  'no D under a softcap': { on: 'softcap', change: ofDelta(() => 0), causes: ['delta-missing'] },
  'D is added': { on: 'causal', change: ofDelta((d, row) => -d[row]), causes: ['delta-sign'] },
  'D twice': { on: 'grouped', change: ofDelta((d, row) => 2 * d[row]), causes: ['delta-twice'] },
  'half of D': { change: ofDelta((d, row) => half * d[row]), causes: ['delta-factor'] },
  'half of D, packed': {
    on: 'packed',
    change: ofDelta((d, row) => half * d[row]),
    causes: ['delta-factor'],
  },
  'D times the scale': {
    on: 'window',
    change: ofDelta((d, row, _, { scale }) => d[row] * scale),
    causes: ['delta-factor'],
  },
  'D of O without dropout’s factor': {
    on: 'dropout',
    change: ofDelta((d, row) => 0.75 * d[row]),
    causes: ['delta-factor'],
  },
  'D of the row before': {
    change: ofDelta((d, row) => around(d, row - 1)),
    causes: ['delta-previous-row'],
  },
  'D of the next row': {
    on: 'causal',
    change: ofDelta((d, row) => around(d, row + 1)),
    causes: ['delta-next-row'],
  },
  'D of the row before in each head': {
    on: 'sinks',
    change: ofDelta((d, row, { queries }) => d[row % queries === 0 ? row : row - 1]),
    causes: ['delta-previous-row'],
  },
  'D of the next head': {
    change: ofDelta((d, row, { queries }) => around(d, row + queries)),
    causes: ['delta-of-other-head'],
  },
  'D of the head before, causal': {
    on: 'causal',
    change: ofDelta((d, row, { queries }) => around(d, row - queries)),
    causes: ['delta-of-other-head'],
  },
  'D of the first head': {
    on: 'grouped',
    change: ofDelta((d, row, { queries }) => d[row % queries]),
    causes: ['delta-of-other-head'],
    place: 'heads 1 to 5',
  },
  'D of the other batch entry': {
    change: ofDelta((d, row, { queries, heads }) => around(d, row + queries * heads)),
    causes: ['delta-of-other-batch'],
  },
  'D of 64 rows before': {
    on: 'window',
    change: ofDelta((d, row, { queries }) => d[row % queries < 64 ? row : row - 64]),
    causes: ['delta-of-other-rows'],
    place: 'queries 64 to 99',
  },
  'D of half of the columns': {
    change: (_, __, { vDim }) => ({
      delta: ({ out, dout }) => {
        const made = new Float32Array(out.length / vDim);
        return made.map((_x, row) => {
          let sum = 0;
          for (let c = row * vDim; c < row * vDim + vDim / 2; c++)
            sum = Math.fround(sum + out[c] * dout[c]);
          return sum;
        });
      },
    }),
    causes: ['delta-columns'],
  },
  'D of an O whose row sum lacks the sink': {
    on: 'sinks',
    change: ({ read }, { sink }, { queries, heads }) => ({
      read: ({ logarithm, delta }) => {
        const logits = decodeTensor(sink!.logits);
        const share = (row: number) =>
          1 - Math.exp(logits[Math.floor(row / queries) % heads] - logarithm[row]);
        const { logarithm: own } = read({ logarithm, delta });
        return { logarithm: own, delta: delta.map((d, row) => d / share(row)) };
      },
    }),
    causes: ['delta-without-sink'],
  },
  // A published backward does so: what it does is said, and nothing is called unwritten.
  'D of products in bf16': {
    on: 'causal',
    change: (_, __, { vDim }) => ({
      delta: ({ out, dout }) => {
        const short = (x: number) => round(formats.bf16, x);
        return new Float32Array(out.length / vDim).map((_x, row) => {
          let sum = 0;
          for (let c = row * vDim; c < (row + 1) * vDim; c++)
            sum = Math.fround(sum + short(out[c] * dout[c]));
          return sum;
        });
      },
    }),
    causes: ['delta-narrow'],
  },
  'D in bf16': {
    on: 'causal',
    change: ofDelta((d, row) => round(formats.bf16, d[row])),
    causes: ['delta-narrow'],
  },
  'stale D in 20 rows': {
    change: inRows(
      ({ sequence, head, query }) => sequence === 0 && head === 1 && query >= 40 && query < 60,
      ofDelta((d, row) => 0.5 * around(d, row + 7) + 1.3),
    ),
    causes: ['delta-wrong'],
    place: 'sequence 0, head 1, queries 40 to 59',
  },
  'no D in the last tile': {
    change: inRows(
      ({ query }) => query >= 64,
      ofDelta(() => 0),
    ),
    causes: ['delta-missing'],
    place: 'queries 64 to 95',
  },
  'no D in one head': {
    change: inRows(
      ({ sequence, head }) => sequence === 1 && head === 2,
      ofDelta(() => 0),
    ),
    causes: ['delta-missing'],
    place: 'sequence 1, head 2',
  },
  'half of D in one head of a group': {
    on: 'grouped',
    change: inRows(
      ({ head }) => head === 4,
      ofDelta((d, row) => half * d[row]),
    ),
    causes: ['delta-factor'],
    place: 'head 4',
  },
  'D of the row before in one sequence': {
    on: 'packed',
    change: inRows(
      ({ sequence }) => sequence === 2,
      ofDelta((d, row) => around(d, row - 1)),
    ),
    causes: ['delta-previous-row'],
    place: 'sequence 2',
  },
};

/** LSEs of something else. */
const logarithms: Readonly<Record<string, PlantedBug>> = {
  'an LSE in base 2': {
    change: ofLse((l, row) => Math.fround(l[row] * Math.LOG2E)),
    causes: ['lse-base-2'],
  },
  'a natural LSE for one in base 2': {
    on: 'causal',
    change: ofLse((l, row) => Math.fround(l[row] * Math.LN2)),
    causes: ['lse-natural-for-base-2'],
  },
  'an LSE in base 2 in one head': {
    on: 'grouped',
    change: inRows(
      ({ head }) => head === 3,
      ofLse((l, row) => Math.fround(l[row] * Math.LOG2E)),
    ),
    causes: ['lse-base-2'],
    place: 'head 3',
  },
  'no LSE': { on: 'window', change: ofLse(() => 0), causes: ['lse-missing'] },
  'the LSE of the next row': {
    change: ofLse((l, row) => around(l, row + 1)),
    causes: ['statistics-of-others'],
  },
  'the LSE of the next head': {
    on: 'grouped',
    change: ofLse((l, row, { queries }) => around(l, row + queries)),
    causes: ['statistics-of-others'],
  },
  'the LSE of the other batch entry': {
    on: 'square',
    change: ofLse((l, row, { queries, heads }) => around(l, row + queries * heads)),
    causes: ['statistics-of-others'],
  },
  'LSE and D of the row before': {
    on: 'dropout',
    change: () => ({
      read: ({ logarithm, delta }) => ({
        logarithm: logarithm.map((_, row) => around(logarithm, row - 1)),
        delta: delta.map((_, row) => around(delta, row - 1)),
      }),
    }),
    causes: ['statistics-of-others'],
  },
  'zeros for LSE and D of a tile': {
    on: 'causal',
    change: inRows(
      ({ query }) => query >= 64,
      () => ({
        read: ({ logarithm, delta }) => ({
          logarithm: logarithm.map(() => 0),
          delta: delta.map(() => 0),
        }),
      }),
    ),
    causes: ['statistics-zero'],
    place: 'queries 64 to 109',
  },
  'an LSE without the sink': {
    on: 'sinks',
    change: (_, { sink }, { queries, heads }) => ({
      read: ({ logarithm, delta }) => {
        const logits = decodeTensor(sink!.logits);
        const ofKeys = (x: number, i: number) =>
          x + Math.log1p(-Math.exp(Math.min(0, logits[Math.floor(i / queries) % heads] - x)));
        return { delta, logarithm: logarithm.map(ofKeys) };
      },
    }),
    causes: ['sink-missing'],
  },
};

/** A band of keys beside the diagonal, aligned at the last key or the first. */
function band(
  change: { readonly left?: number; readonly right?: number },
  isTopLeft = false,
): StepChange {
  return (_, problem, shape) => {
    const whole = problemMask({ ...problem, causal: false, window: null }, shape);
    const { causal, window } = problem;
    const left = window === null ? Infinity : window.left + (change.left ?? 0);
    const right = (causal ? 0 : window === null ? Infinity : window.right) + (change.right ?? 0);
    const sequences = problem.sequences ?? [
      { firstQuery: 0, queries: shape.queries, firstKey: 0, keys: shape.keys },
    ];
    return {
      ranges: (head, query) => {
        const own = sequences.find(
          ({ firstQuery, queries }) => query >= firstQuery && query < firstQuery + queries,
        )!;
        const corner = isTopLeft ? 0 : own.keys - own.queries;
        const diagonal = own.firstKey + query - own.firstQuery + corner;
        return clipRanges(whole.ranges(head, query), diagonal - left, diagonal + right + 1);
      },
    };
  };
}

const without =
  (changes: (problem: Problem) => ProblemChange): StepChange =>
  (_, problem, shape) => ({
    ranges: problemMask(changedProblem(problem, changes(problem)), shape).ranges,
  });

/** Rows that see other keys than they did forwards. */
const masks: Readonly<Record<string, PlantedBug>> = {
  'causal, one key more': { on: 'causal', change: band({ right: 1 }), causes: ['mask-off-by-one'] },
  'causal, one key less': {
    on: 'causal',
    change: band({ right: -1 }),
    causes: ['mask-off-by-one'],
  },
  'causal, two keys less': {
    on: 'sinks',
    change: band({ right: -2 }),
    causes: ['mask-off-by-two'],
  },
  'causal, aligned at the top left': {
    on: 'causal',
    change: band({}, true),
    causes: ['mask-top-left'],
  },
  'causal, aligned at the top left, packed': {
    on: 'packed',
    change: band({}, true),
    causes: ['mask-top-left'],
    place: 'sequences 0 and 2',
  },
  'causal, one key more, packed': {
    on: 'packed',
    change: band({ right: 1 }),
    causes: ['mask-off-by-one'],
  },
  'causal, one key less, in one sequence': {
    on: 'packed',
    change: inRows(({ sequence }) => sequence === 0, band({ right: -1 })),
    causes: ['mask-off-by-one'],
    place: 'sequence 0',
  },
  'causal, one key more, in one head': {
    on: 'causal',
    change: inRows(({ head }) => head === 1, band({ right: 1 })),
    causes: ['mask-off-by-one'],
    place: 'head 1',
  },
  'causal left out': {
    on: 'causal',
    change: without(() => ({ causal: false })),
    causes: ['mask-ignored'],
  },
  'causal left out in one sequence': {
    on: 'packed',
    change: inRows(
      ({ sequence }) => sequence === 2,
      without(() => ({ causal: false })),
    ),
    causes: ['mask-ignored'],
    place: 'sequence 2',
  },
  'causal left out in the last tile of rows': {
    on: 'causal',
    change: inRows(
      ({ query }) => query >= 64,
      without(() => ({ causal: false })),
    ),
    causes: ['mask-ignored'],
    place: 'queries 64 to 109',
  },
  'borders of sequences left out': {
    on: 'packed',
    change: without(() => ({ sequences: undefined })),
    causes: ['mask-ignored'],
  },
  'a window left out': {
    on: 'window',
    change: without(() => ({ window: null })),
    causes: ['mask-ignored'],
  },
  'a window, one more on the right': {
    on: 'window',
    change: band({ right: 1 }),
    causes: ['mask-off-by-one'],
  },
  'a window, one less on the right': {
    on: 'window',
    change: band({ right: -1 }),
    causes: ['mask-off-by-one'],
  },
  'a window, one more on the left': {
    on: 'window',
    change: band({ left: 1 }),
    causes: ['mask-off-by-one'],
  },
  'a window, one less on the left': {
    on: 'window',
    change: band({ left: -1 }),
    causes: ['mask-off-by-one'],
  },
  'a window, aligned at the top left': {
    on: 'window',
    change: band({}, true),
    causes: ['mask-top-left'],
  },
  'a tile of keys not visited by a tile of rows': {
    on: 'plain',
    change: inRows(
      ({ query }) => query < 64,
      ({ ranges }) => ({ ranges: (head, query) => clipRanges(ranges(head, query), 0, 128) }),
    ),
    causes: ['keys-unseen'],
    place: 'queries 0 to 63, keys 128 to 129',
  },
  'the last keys unseen': {
    on: 'plain',
    change: ({ ranges }) => ({
      ranges: (head, query) => clipRanges(ranges(head, query), 0, 128),
    }),
    causes: ['keys-unseen'],
    place: 'keys 128 to 129',
  },
};

/** Bugs of what rows are normalised by, and of what they see. */
export const rowBugs = { ...deltas, ...logarithms, ...masks };
