import { storeProblem, type Problem } from '../../../../src/problem/index.js';
import { normalProblem, normalTensor, type seededRandom } from '../../../kernels/features/index.js';
import { sequencesOf, tensor } from '../../../setup/problems.js';
import type { PlantedProblem } from '../planted/index.js';

const small = { batch: 1, heads: 2, kvHeads: 2, queries: 18, keys: 22, dim: 8 } as const;
const sizes = [
  [12, 18],
  [9, 9],
  [11, 20],
] as const;
const total = (axis: 0 | 1) => sizes.reduce((sum, one) => sum + one[axis], 0);

type Random = ReturnType<typeof seededRandom>;

const packed = (random: Random) => ({
  ...normalProblem(random, { ...small, queries: total(0), keys: total(1) }),
  sequences: sequencesOf(sizes),
  causal: true,
});

/** The problems that bugs of a backward pass are planted on, in little. */
export const smallProblems: Readonly<Record<PlantedProblem, (random: Random) => Problem>> = {
  plain: (random) => normalProblem(random, { ...small, batch: 2 }),
  fp32: (random) => normalProblem(random, { ...small, format: 'fp32' }),
  square: (random) => normalProblem(random, { ...small, queries: 20, keys: 20 }),
  causal: (random) => ({ ...normalProblem(random, { ...small, format: 'fp16' }), causal: true }),
  window: (random) => ({ ...normalProblem(random, small), window: { left: 7, right: 3 } }),
  grouped: (random) => normalProblem(random, { ...small, heads: 6, format: 'fp16' }),
  packed,
  bias: (random) => ({
    ...normalProblem(random, { ...small, heads: 3, kvHeads: 3 }),
    bias: normalTensor(random, 'fp32', [3, 18, 22], 1.5),
  }),
  alibi: (random) => ({
    ...normalProblem(random, small),
    alibiSlopes: normalTensor(random, 'fp32', [2], 0.3),
  }),
  dropout: (random) => ({
    ...normalProblem(random, { ...small, format: 'fp16' }),
    dropout: {
      kept: {
        shape: [1, 2, 18, 22],
        data: Uint8Array.from({ length: 792 }, () => (random() < 0.75 ? 1 : 0)),
      },
      probability: 0.25,
    },
  }),
  sinks: (random) => ({
    ...normalProblem(random, { ...small, queries: 20, keys: 20 }),
    causal: true,
    sink: { logits: tensor('fp32', [2], (head) => 2 + head + random()), inLse: true },
  }),
  softcap: (random) => ({ ...normalProblem(random, small), softcap: 2 }),
  'other dims': (random) => normalProblem(random, { ...small, dim: 12, vDim: 8 }),
  'unusual scale': (random) => ({ ...normalProblem(random, small), scale: 0.4 }),
  pages: (random) =>
    storeProblem(
      packed(random),
      {
        queries: { kind: 'packed' },
        keys: {
          kind: 'paged',
          pageSize: 16,
          spare: 0,
          arrange: (n) => [...Array(n).keys()].reverse(),
        },
      },
      NaN,
    ),
};
