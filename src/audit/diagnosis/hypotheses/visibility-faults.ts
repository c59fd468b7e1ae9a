import type {
  BooleanTensor,
  IntegerTensor,
  Problem,
  ProblemShape,
} from '../../../problem/index.js';
import type { HypothesisFamily } from '../hypothesis.js';
import { type FeatureFault, featureHypothesis } from './feature-fault.js';

const sides = [
  [1, 'behind'],
  [-1, 'before'],
] as const;

/** A problem without one of its features. */
function without(problem: Problem, ...names: readonly (keyof Problem)[]): Problem {
  return Object.fromEntries(
    Object.entries(problem).filter(([name]) => !names.includes(name as keyof Problem)),
  ) as unknown as Problem;
}

/** A fault of masks, which belongs to no technique. */
function fault(id: string, statement: string, problem: Problem): FeatureFault {
  return { id, technique: null, statement, problem };
}

/** Rows of a tensor shifted by `by` along an axis, the end repeated. */
function movedAlong(tensor: BooleanTensor, axis: -1 | -2, by: number): BooleanTensor {
  const { shape, data } = tensor;
  const size = shape.at(axis) ?? 1;
  const stride = axis === -1 ? 1 : (shape.at(-1) ?? 1);
  const moved = data.map((_, i) => {
    const place = Math.floor(i / stride) % size;
    const from = Math.min(Math.max(place + by, 0), size - 1);
    return data[i + (from - place) * stride];
  });
  return { shape, data: moved };
}

/** Larger masks are not copied for a hypothesis. */
const mostElements = 2 ** 25;

function* maskFaults(problem: Problem): Generator<FeatureFault> {
  const { mask } = problem;
  if (mask === undefined) return;
  yield fault('mask-ignored', 'the mask is ignored', without(problem, 'mask'));
  if (mask.data.length > mostElements) return;
  yield fault('mask-inverted', 'the mask hides what it should show', {
    ...problem,
    mask: { ...mask, data: mask.data.map((x) => (x === 0 ? 1 : 0)) },
  });
  for (const [axis, what] of [
    [-1, 'key'],
    [-2, 'query'],
  ] as const) {
    if ((mask.shape.at(axis) ?? 1) < 2) continue;
    for (const [by, where] of sides)
      yield fault('mask-shifted', `the mask of each ${what} is that of the ${what} ${where} it`, {
        ...problem,
        mask: movedAlong(mask, axis, by),
      });
  }
  const [heads, queries, keys] = [1, 1, 1, ...mask.shape].slice(-3);
  if (heads > 1)
    yield fault('mask-of-other-head', 'the mask of head 0 is applied to every head', {
      ...problem,
      mask: { shape: [1, queries, keys], data: mask.data.slice(0, queries * keys) },
    });
}

function* listFaults(problem: Problem): Generator<FeatureFault> {
  if (problem.keyLists === undefined) return;
  yield fault('lists-ignored', 'the lists of keys are ignored', without(problem, 'keyLists'));
}

function* blockMaskFaults(problem: Problem): Generator<FeatureFault> {
  const { blockMask } = problem;
  if (blockMask === undefined) return;
  yield fault('block-mask-ignored', 'the block mask is ignored', without(problem, 'blockMask'));
  const { counts } = blockMask;
  const fewer = counts.data.map((count) => Math.max(0, count - 1));
  yield fault('block-mask-short', 'the last block that each block of queries lists is left out', {
    ...problem,
    blockMask: { ...blockMask, counts: { ...counts, data: fewer } },
  });
  const capacity = blockMask.indices.shape.at(-1) ?? 0;
  const more = counts.data.map((count) => Math.min(capacity, count + 1));
  yield fault('block-mask-long', 'one block more than each block of queries lists is read', {
    ...problem,
    blockMask: { ...blockMask, counts: { ...counts, data: more } },
  });
}

/** Segments whose boundaries are one place later, or earlier by −1. */
function movedBoundaries({ shape, data }: IntegerTensor, by: 1 | -1): IntegerTensor {
  const length = shape.at(-1) ?? 0;
  const moved = data.map((own, i) => {
    const from = i - by;
    return Math.floor(from / length) === Math.floor(i / length) ? data[from] : own;
  });
  return { shape, data: moved };
}

function* segmentFaults(problem: Problem): Generator<FeatureFault> {
  const { segments } = problem;
  if (segments === undefined) return;
  yield fault('segments-ignored', 'the documents are ignored', without(problem, 'segments'));
  for (const [by, where] of [
    [1, 'late'],
    [-1, 'early'],
  ] as const) {
    const keys = movedBoundaries(segments.keys, by);
    const queries = movedBoundaries(segments.queries, by);
    const id = 'segment-boundary';
    yield fault(id, `the documents' boundaries among the keys are one key too ${where}`, {
      ...problem,
      segments: { ...segments, keys },
    });
    yield fault(id, `the documents' boundaries among the queries are one query too ${where}`, {
      ...problem,
      segments: { ...segments, queries },
    });
    yield fault(id, `the documents' boundaries are one place too ${where}`, {
      ...problem,
      segments: { queries, keys },
    });
  }
}

function* prefixFaults(problem: Problem): Generator<FeatureFault> {
  const { prefix } = problem;
  if (prefix === undefined || prefix === 0) return;
  yield fault('prefix-ignored', 'the prefix is ignored', without(problem, 'prefix'));
  yield fault('prefix-limit', 'the prefix is one key too long', { ...problem, prefix: prefix + 1 });
  yield fault('prefix-limit', 'the prefix is one key short', { ...problem, prefix: prefix - 1 });
}

/** Whether masks, biases and dropout have an element for every key of every sequence. */
function coversSequences({ mask, bias, dropout, sequences = [] }: Problem): boolean {
  const longest = sequences.reduce((most, { keys }) => Math.max(most, keys), 0);
  return [mask, bias, dropout?.kept].every((tensor) => {
    const keys = tensor?.shape.at(-1) ?? 1;
    return keys === 1 || longest <= keys;
  });
}

function* sequenceFaults(problem: Problem, { keys }: ProblemShape): Generator<FeatureFault> {
  const { sequences } = problem;
  if (sequences === undefined) return;
  const changed = (
    id: string,
    statement: string,
    change: (index: number) => { readonly firstKey: number; readonly keys: number },
  ): FeatureFault =>
    fault(id, statement, {
      ...problem,
      sequences: sequences.map((one, index) => {
        const { firstKey, keys: count } = change(index);
        const begin = Math.min(Math.max(firstKey, 0), keys);
        return { ...one, firstKey: begin, keys: Math.min(Math.max(count, 0), keys - begin) };
      }),
    });
  for (const [by, where] of sides)
    yield changed(
      'sequence-shifted',
      `the keys of a sequence are read one ${where} their place`,
      (i) => ({
        firstKey: sequences[i].firstKey + by,
        keys: sequences[i].keys,
      }),
    );
  yield changed('sequence-long', 'a sequence has one key of the next', (i) => ({
    firstKey: sequences[i].firstKey,
    keys: sequences[i].keys + 1,
  }));
  yield changed('sequence-short', 'the last key of a sequence is left out', (i) => ({
    firstKey: sequences[i].firstKey,
    keys: sequences[i].keys - 1,
  }));
  const last = sequences.length - 1;
  if (last < 1) return;
  yield changed('sequence-neighbour', "a sequence reads the next one's keys", (i) => ({
    firstKey: sequences[Math.min(i + 1, last)].firstKey,
    keys: sequences[i].keys,
  }));
  yield changed('sequence-first', "a sequence reads the first one's keys", (i) => ({
    firstKey: 0,
    keys: sequences[i].keys,
  }));
  yield changed('sequences-ignored', 'every query sees the keys of all sequences', () => ({
    firstKey: 0,
    keys,
  }));
}

/** Faults in which keys the features of a problem let a query see. */
export const visibilityHypotheses: HypothesisFamily = function* (context) {
  const { shape, reader } = context;
  const { problem } = reader;
  const faults = [
    ...maskFaults(problem),
    ...blockMaskFaults(problem),
    ...listFaults(problem),
    ...segmentFaults(problem),
    ...prefixFaults(problem),
    // Nobody knows what a kernel reads beyond the end of a mask.
    ...[...sequenceFaults(problem, shape)].filter((one) => coversSequences(one.problem)),
  ];
  for (const one of faults) yield featureHypothesis(context, one);
};
