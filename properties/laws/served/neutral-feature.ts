import { encodeFromFloat64, formats, tensorScales } from '../../../src/formats/index.js';
import { problemShape, type BooleanTensor, type Problem } from '../../../src/problem/index.js';
import {
  excludeOneAnother,
  kindsOf,
  takesSequences,
  type FeatureKind,
} from '../../problems/index.js';
import { arrangedViolation } from '../compare-runs.js';
import { NotApplicable, type Law } from '../law.js';
import { requirePromised } from '../promised-problem.js';
import { neededBlocks } from './mask-tensors.js';
import { hasRowFactors, wholeSizesOf } from './sequence-problems.js';

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

/** A feature without effect, on a problem that lacks it; null where it cannot be added. */
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
