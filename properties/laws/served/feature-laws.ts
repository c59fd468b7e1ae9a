import {
  broadcastStrides,
  problemMask,
  problemShape,
  type BlockMask,
  type BooleanTensor,
  type Problem,
} from '../../../src/problem/index.js';
import { encodeFromFloat64, formats, tensorScales } from '../../../src/formats/index.js';
import {
  excludeOneAnother,
  kindsOf,
  takesSequences,
  type FeatureKind,
} from '../../problems/index.js';
import { arrangedViolation } from '../compare-runs.js';
import { NotApplicable, type Law } from '../law.js';
import { isPromised, requirePromised } from '../promised-problem.js';
import { hasRowFactors, wholeSizesOf } from './sequence-problems.js';
import { indices } from '../transform-problem.js';

function filledTensor(shape: readonly number[], value: number) {
  const count = shape.reduce((product, size) => product * size, 1);
  const values = new Float64Array(count).fill(value);
  return {
    format: 'fp32',
    shape,
    data: encodeFromFloat64(formats.fp32, values),
  } as const;
}

function truths(shape: readonly number[]): BooleanTensor {
  return {
    shape,
    data: new Uint8Array(shape.reduce((product, size) => product * size, 1)).fill(1),
  };
}

function oneSegment(length: number) {
  return { shape: [length], data: new Int32Array(length).fill(7) };
}

/** The blocks that rows of a problem see some key of, listed for each head. */
function neededBlocks(problem: Problem, blockQueries: number, blockKeys: number): BlockMask {
  const shape = problemShape(problem);
  const { batch, heads, queries, keys } = shape;
  const mask = problemMask(problem, shape);
  const rows = Math.ceil(queries / blockQueries);
  const columns = Math.ceil(keys / blockKeys);
  const counts = new Int32Array(batch * heads * rows);
  const data = new Int32Array(counts.length * columns);
  for (let head = 0; head < batch * heads; head++)
    for (let row = 0; row < rows; row++) {
      const seen = new Uint8Array(columns);
      const end = Math.min(queries, (row + 1) * blockQueries);
      for (let query = row * blockQueries; query < end; query++)
        for (const range of mask.ranges(head, query))
          seen.fill(1, Math.floor(range.begin / blockKeys), Math.ceil(range.end / blockKeys));
      const list = indices(columns).filter((column) => seen[column] === 1);
      counts[head * rows + row] = list.length;
      data.set(list, (head * rows + row) * columns);
    }
  return {
    counts: { shape: [batch, heads, rows], data: counts },
    indices: { shape: [batch, heads, rows, columns], data },
    blockQueries,
    blockKeys,
  };
}

/** A feature that changes nothing, on a problem that has not got it; null where it cannot be. */
interface NeutralFeature {
  readonly kind: FeatureKind;
  readonly words: string;
  readonly add: (problem: Problem) => Problem | null;
}

const neutralFeatures: readonly NeutralFeature[] = [
  {
    kind: 'bias',
    words: 'with a bias of 0',
    add: (problem) => ({ ...problem, bias: filledTensor(wholeSizesOf(problem), 0) }),
  },
  {
    kind: 'mask',
    words: 'with a mask that is true everywhere',
    add: (problem) => ({ ...problem, mask: truths(wholeSizesOf(problem)) }),
  },
  {
    kind: 'sink',
    words: 'with a sink of −∞ that the LSE has',
    add: (problem) => withSink(problem, true),
  },
  {
    kind: 'sink',
    words: 'with a sink of −∞ that the LSE has not',
    add: (problem) => withSink(problem, false),
  },
  {
    kind: 'dropout',
    words: 'with dropout that keeps all, p = 0',
    add: (problem) => ({
      ...problem,
      dropout: { kept: truths(wholeSizesOf(problem)), probability: 0 },
    }),
  },
  {
    kind: 'prefix',
    words: 'with a prefix of no keys',
    add: (problem) => ({ ...problem, prefix: 0 }),
  },
  {
    kind: 'segments',
    words: 'with one document',
    add: (problem) => {
      const { queries, keys } = problemShape(problem);
      return { ...problem, segments: { queries: oneSegment(queries), keys: oneSegment(keys) } };
    },
  },
  {
    kind: 'alibi',
    words: 'with ALiBi slopes of 0',
    add: (problem) => ({
      ...problem,
      alibiSlopes: filledTensor([problemShape(problem).heads], 0),
    }),
  },
  {
    kind: 'packed',
    words: 'as one packed sequence',
    add: (problem) => {
      const { batch, queries, keys } = problemShape(problem);
      if (batch !== 1 || hasRowFactors(problem)) return null;
      return { ...problem, sequences: [{ firstQuery: 0, queries, firstKey: 0, keys }] };
    },
  },
  {
    kind: 'block-mask',
    words: 'with the blocks of 64 × 64 that some query sees',
    add: (problem) => ({ ...problem, blockMask: neededBlocks(problem, 64, 64) }),
  },
  {
    kind: 'block-mask',
    words: 'with the blocks of 128 × 128 that some query sees',
    add: (problem) => ({ ...problem, blockMask: neededBlocks(problem, 128, 128) }),
  },
  {
    kind: 'descale',
    words: 'with factors of 1 for Q, K and V',
    add: (problem) =>
      formats[problem.q.format].storageBits === 8 ? withFactorsOfOne(problem) : null,
  },
];

function withSink(problem: Problem, inLse: boolean): Problem {
  const logits = filledTensor([problemShape(problem).heads], -Infinity);
  return { ...problem, sink: { logits, inLse } };
}

function withFactorsOfOne(problem: Problem): Problem {
  const scaled = (tensor: Problem['q']) => ({
    ...tensor,
    scales: tensorScales(tensor, [
      {
        name: 'descale',
        format: 'fp32',
        values: Float64Array.of(1),
        shape: tensor.shape.map(() => 1),
        blocks: tensor.shape.map((size) => Math.max(size, 1)),
      },
    ]),
  });
  return { ...problem, q: scaled(problem.q), k: scaled(problem.k), v: scaled(problem.v) };
}

/** Each promised feature in a form that changes nothing; choices go round those that the problem can get. */
export const neutralFeature: Law = {
  statement:
    'A bias of 0, a mask of all true, a sink of −∞, dropout of nothing and their like change nothing',
  reason:
    'They are the same problem on another code path: one that adds, masks or counts wrongly does so here too.',
  strengths: ['bits', 'bound'],
  usual: 'bound',
  choices: neutralFeatures.length,
  notFor: ({ features }) =>
    neutralFeatures.some(({ kind }) => features.includes(kind))
      ? null
      : 'no feature is promised that could change nothing',
  violation: async ({ problem, choice }, tools) => {
    const { features } = tools.promises;
    const present = kindsOf(problem);
    const fitting = neutralFeatures.filter(
      ({ kind }) =>
        (kind === 'packed' ? takesSequences(features) : features.includes(kind)) &&
        !present.some(
          (other) => other === kind || (other !== null && excludeOneAnother(kind, other)),
        ),
    );
    if (fitting.length === 0) throw new NotApplicable('the problem has every feature already');
    const { words, add } = fitting[choice % fitting.length];
    const transformed = add(problem);
    if (transformed === null) throw new NotApplicable('the problem cannot have the feature');
    requirePromised(transformed, tools.promises);
    return arrangedViolation({ problem, transformed, words }, tools);
  },
};

/** What every row sees, as a mask of the whole shape. */
function explicitMask(problem: Problem): BooleanTensor {
  const shape = problemShape(problem);
  const { sequences } = problem;
  const whole = wholeSizesOf(problem);
  const { batch, head, query } = broadcastStrides(whole);
  const data = new Uint8Array(whole.reduce((product, size) => product * size, 1));
  const mask = problemMask(problem, shape);
  const rowsOf = sequences ?? indices(shape.batch).map(() => null);
  rowsOf.forEach((sequence, index) => {
    const count = sequence?.queries ?? shape.queries;
    for (let h = 0; h < shape.heads; h++)
      for (let i = 0; i < count; i++) {
        const ranges =
          sequence === null
            ? mask.ranges(index * shape.heads + h, i)
            : mask.ranges(h, sequence.firstQuery + i);
        // A size of 1 has no stride, and no second element either.
        const row = index * batch + h * head + i * query;
        const first = sequence?.firstKey ?? 0;
        for (const { begin, end } of ranges) data.fill(1, row + begin - first, row + end - first);
      }
  });
  return { shape: whole, data };
}

/** All masks of a problem as one boolean mask, and the blocks that they leave beside them. */
const maskForms = [
  (problem: Problem): Problem => {
    const { segments, blockMask, prefix, ...rest } = problem;
    void [segments, blockMask, prefix];
    const mask = explicitMask(problem);
    if (!mask.data.includes(1)) throw new NotApplicable('no query of the problem sees a key');
    return { ...rest, causal: false, window: null, mask };
  },
  (problem: Problem): Problem => {
    if (problem.blockMask !== undefined) throw new NotApplicable('the problem has a block mask');
    return { ...problem, blockMask: neededBlocks(problem, 64, 128) };
  },
] as const;

const maskWords = [
  'with all masks as one boolean mask',
  'with the blocks of 64 × 128 that some query sees',
] as const;

/** Masks in place of a causal mask, a window, documents and blocks, and blocks beside them. */
export const maskTensors: Law = {
  statement:
    'Causal masks, windows, documents and blocks are the boolean mask and the blocks that they are',
  reason:
    'Masks that hide the same keys are the same problem. A kernel that ignores a mask, takes blocks for all there is or skips one too many differs.',
  strengths: ['bits', 'bound'],
  usual: 'bound',
  choices: maskForms.length,
  notFor: ({ features }) =>
    features.includes('mask') || features.includes('block-mask')
      ? null
      : 'neither boolean nor block masks are promised',
  violation: async ({ problem, choice }, tools) => {
    const isTensor = choice % maskForms.length === 0;
    const needed: FeatureKind = isTensor ? 'mask' : 'block-mask';
    if (!tools.promises.features.includes(needed))
      throw new NotApplicable(`a ${isTensor ? 'boolean' : 'block'} mask is not promised`);
    if (!isTensor && problem.sequences !== undefined)
      throw new NotApplicable('packed sequences have no block mask');
    const transformed = maskForms[choice % maskForms.length](problem);
    if (!isPromised(transformed, tools.promises))
      throw new NotApplicable('what it makes of the problem is not promised');
    return arrangedViolation({ problem, transformed, words: maskWords[choice] }, tools);
  },
};
