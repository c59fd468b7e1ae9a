import { problemShape, problemMask, type Problem } from '../../../src/problem/index.js';
import { featureProblems, normalProblem, normalTensor } from '../features/index.js';
import { deltaOf } from './backward-steps.js';
import { anywhere, faulty, tile, type FaultyBackward } from './fault.js';

const withoutBlocks = ({ blockMask: _, ...rest }: Problem): Problem => rest;

/** Scores so low that e^−LSE is infinite in fp32. */
const lowest = -100;

/** One query that sees scores far below 0. */
function oneDeepQuery(random: Parameters<typeof normalProblem>[0]): Problem {
  return {
    ...normalProblem(random, { queries: 1 }),
    bias: { ...normalTensor(random, 'fp32', [1]), data: Float32Array.of(4 * lowest) },
  };
}

/** Queries of which some see scores far below 0, all of the same keys. */
function someDeepQueries(random: Parameters<typeof normalProblem>[0]): Problem {
  const data = Float32Array.from({ length: 40 }, (_, query) => (query % 8 === 3 ? 4 * lowest : 0));
  return {
    ...normalProblem(random, { batch: 1, heads: 2, kvHeads: 1, queries: 40, keys: 60 }),
    window: { left: 10, right: 0 },
    bias: { ...normalTensor(random, 'fp32', [40, 1]), data },
  };
}

/** What published bugs of backwards do, each in a plain kernel that has no other fault. */
export const publishedBackwards: readonly FaultyBackward[] = [
  faulty(
    ['dv-stride', 'Dao-AILab/flash-attention #2552', 'dV is read with the stride of dK'],
    ['dv'],
    {
      touches: (problem) => problemShape(problem).qkDim !== problemShape(problem).vDim,
      example: featureProblems['other dimensions of V'],
    },
    (_, __, { keys, qkDim, vDim }) => ({
      stored: (of, values) => {
        if (of !== 'dv' || qkDim === vDim) return values;
        const ofHead = keys * vDim;
        return values.map((___, i) => {
          const [row, c] = [Math.floor((i % ofHead) / vDim), i % vDim];
          const at = row * qkDim + c;
          return at < ofHead ? values[i - (i % ofHead) + at] : 0;
        });
      },
    }),
  ),
  faulty(
    [
      'blocks-of-the-backward',
      'Dao-AILab/flash-attention #2623',
      'the block mask holds in the forward alone',
    ],
    ['dq', 'dk', 'dv'],
    {
      touches: ({ blockMask }) => blockMask !== undefined,
      example: featureProblems['a block mask'],
    },
    (_, problem, shape) => ({ ranges: problemMask(withoutBlocks(problem), shape).ranges }),
  ),
  faulty(
    [
      'delta-half-written',
      'Dao-AILab/flash-attention #2481',
      'D is read while half of the columns of O and dO are added',
    ],
    ['dq', 'dk'],
    anywhere,
    (_, __, { vDim }) => ({ delta: (inputs) => deltaOf(inputs, vDim, vDim >> 1) }),
  ),
  faulty(
    [
      'statistics-too-early',
      'Dao-AILab/flash-attention #2756, #2643',
      'the last tile of queries of a head reads LSE and D of the head before; of the first, zeros',
    ],
    ['dq', 'dk', 'dv'],
    anywhere,
    (_, __, { queries }) => ({
      read: ({ logarithm, delta }) => {
        const last = Math.floor((queries - 1) / tile) * tile;
        const before = (values: Float32Array) =>
          values.map((x, i) => (i % queries < last ? x : (values[i - queries] ?? 0)));
        return { logarithm: before(logarithm), delta: before(delta) };
      },
    }),
  ),
  faulty(
    [
      'one-query-deep-below',
      'NVIDIA/cudnn-frontend #1072',
      'with one query P of dK and dV is e^score times e^−LSE: 0 times infinity',
    ],
    ['dk', 'dv'],
    {
      touches: (problem) => problemShape(problem).queries === 1 && problem.bias !== undefined,
      example: oneDeepQuery,
    },
    (_, __, { queries }) => ({
      factors: ({ of, head, values }, { logarithm }) =>
        of === 'dq' || queries > 1 || logarithm[head] > lowest ? values : values.fill(NaN),
    }),
  ),
  faulty(
    [
      'deep-rows-overflow',
      'NVIDIA/cudnn-frontend #1072',
      'P is e^score times e^−LSE, which overflows where scores are far below 0: 0 times infinity',
    ],
    ['dq', 'dk', 'dv'],
    { touches: ({ bias }) => bias !== undefined, example: someDeepQueries },
    (_, __, { queries, keys }) => ({
      factors: ({ head, values }, { logarithm }) =>
        values.map((x, i) =>
          x !== 0 && logarithm[head * queries + Math.floor(i / keys)] < lowest ? NaN : x,
        ),
    }),
  ),
  faulty(
    [
      'accumulator-not-zeroed',
      'NVIDIA/cudnn-frontend #384',
      'with a block mask dK is added to what its memory held',
    ],
    ['dk'],
    {
      touches: ({ blockMask }) => blockMask !== undefined,
      example: featureProblems['a block mask'],
    },
    (_, { blockMask }) => ({
      stored: (of, values) =>
        of === 'dk' && blockMask !== undefined ? values.map((x) => x + 1e11) : values,
    }),
  ),
  faulty(
    [
      'packed-as-padded',
      'NVIDIA/TransformerEngine #3333',
      'LSE and D of packed sequences are read where padded ones would lie',
    ],
    ['dq', 'dk', 'dv'],
    {
      touches: ({ sequences }) => sequences !== undefined,
      example: featureProblems['packed sequences'],
    },
    (_, { sequences = [] }, { queries }) => ({
      read: ({ logarithm, delta }) => {
        const longest = sequences.reduce((most, one) => Math.max(most, one.queries), 0);
        const dense = (values: Float32Array) => {
          const found = values.slice();
          sequences.forEach(({ firstQuery, queries: own }, sequence) => {
            for (let head = 0; head < values.length; head += queries)
              for (let query = 0; query < own; query++)
                found[head + firstQuery + query] =
                  values[head + ((sequence * longest + query) % queries)];
          });
          return found;
        };
        return { logarithm: dense(logarithm), delta: dense(delta) };
      },
    }),
  ),
  faulty(
    [
      'nan-of-padding',
      'tile-ai/tilelang #2461',
      'D of queries beyond the last is not written: dK adds 0 times NaN',
    ],
    ['dk'],
    {
      ...anywhere,
      touches: (problem) => problemShape(problem).queries % tile !== 0,
    },
    (_, __, { queries, keys }) => ({
      factors: ({ of, values }) =>
        of === 'dk' && queries % tile !== 0 && queries > 0
          ? values.map((x, i) => (i < keys ? NaN : x))
          : values,
    }),
  ),
];
