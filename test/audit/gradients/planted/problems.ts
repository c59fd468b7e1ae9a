import {
  storeProblem,
  type BooleanTensor,
  type Problem,
  type Sequence,
} from '../../../../src/problem/index.js';
import { normalProblem, normalTensor, seededRandom } from '../../../kernels/features/index.js';
import { fromEnvironment } from '../../../setup/effort.js';
import { sequencesOf, tensor } from '../../../setup/problems.js';

/** PLANTED_SEED draws other problems. */
const seed = fromEnvironment('PLANTED_SEED', 20_261_124);

/** Three sequences, the second of as many queries as keys. */
export const packedSizes = [
  [40, 70],
  [30, 30],
  [50, 90],
] as const;

function booleans(random: () => number, shape: readonly number[], share: number): BooleanTensor {
  const data = new Uint8Array(shape.reduce((a, b) => a * b, 1));
  return { shape, data: data.map(() => (random() < share ? 1 : 0)) };
}

/** The documents of a packed batch. */
function sequences(): Sequence[] {
  return sequencesOf(packedSizes);
}

const total = (axis: 0 | 1) => packedSizes.reduce((sum, sizes) => sum + sizes[axis], 0);

/** Tokens of a page. */
export const pageSize = 16;

/** The problems that bugs of a backward pass are planted on, N(0, 1) in the format that they name, else bf16. */
const problems = {
  plain: (random) =>
    normalProblem(random, { batch: 2, heads: 4, kvHeads: 4, queries: 96, keys: 130 }),
  fp32: (random) =>
    normalProblem(random, { heads: 2, kvHeads: 2, queries: 70, keys: 90, format: 'fp32' }),
  square: (random) => normalProblem(random, { heads: 4, kvHeads: 4, queries: 80, keys: 80 }),
  causal: (random) => ({
    ...normalProblem(random, {
      batch: 1,
      heads: 2,
      kvHeads: 2,
      queries: 110,
      keys: 150,
      format: 'fp16',
    }),
    causal: true,
  }),
  window: (random) => ({
    ...normalProblem(random, { batch: 1, heads: 2, kvHeads: 2, queries: 100, keys: 140 }),
    window: { left: 20, right: 6 },
  }),
  grouped: (random) =>
    normalProblem(random, {
      batch: 1,
      heads: 6,
      kvHeads: 2,
      queries: 70,
      keys: 90,
      format: 'fp16',
    }),
  packed: (random) => ({
    ...normalProblem(random, { batch: 1, heads: 2, kvHeads: 2, queries: total(0), keys: total(1) }),
    sequences: sequences(),
    causal: true,
  }),
  bias: (random) => ({
    ...normalProblem(random, { batch: 1, heads: 3, kvHeads: 3, queries: 80, keys: 120 }),
    bias: normalTensor(random, 'fp32', [3, 80, 120], 1.5),
  }),
  alibi: (random) => ({
    ...normalProblem(random, { batch: 1, heads: 2, kvHeads: 2, queries: 70, keys: 130 }),
    alibiSlopes: normalTensor(random, 'fp32', [2], 0.05),
  }),
  dropout: (random) => ({
    ...normalProblem(random, {
      batch: 1,
      heads: 2,
      kvHeads: 2,
      queries: 80,
      keys: 100,
      format: 'fp16',
    }),
    dropout: { kept: booleans(random, [1, 2, 80, 100], 0.75), probability: 0.25 },
  }),
  sinks: (random) => ({
    ...normalProblem(random, { batch: 1, heads: 2, kvHeads: 2, queries: 90, keys: 90 }),
    causal: true,
    // Large enough to show in both heads.
    sink: { logits: tensor('fp32', [2], (head) => 2 + head + random()), inLse: true },
  }),
  softcap: (random) => ({
    ...normalProblem(random, { batch: 1, heads: 2, kvHeads: 2, queries: 80, keys: 100 }),
    softcap: 2,
  }),
  'other dims': (random) =>
    normalProblem(random, {
      batch: 1,
      heads: 2,
      kvHeads: 2,
      queries: 80,
      keys: 100,
      dim: 24,
      vDim: 16,
    }),
  'unusual scale': (random) => ({
    ...normalProblem(random, { batch: 1, heads: 2, kvHeads: 2, queries: 80, keys: 100 }),
    scale: 0.4,
  }),
  pages: (random) =>
    storeProblem(
      {
        ...normalProblem(random, {
          batch: 1,
          heads: 2,
          kvHeads: 2,
          queries: total(0),
          keys: total(1),
        }),
        sequences: sequences(),
        causal: true,
      },
      {
        queries: { kind: 'packed' },
        keys: {
          kind: 'paged',
          pageSize,
          spare: 0,
          arrange: (n) => [...Array(n).keys()].reverse(),
        },
      },
      NaN,
    ),
} as const satisfies Record<string, (random: ReturnType<typeof seededRandom>) => Problem>;

/** One of the problems that bugs are planted on. */
export type PlantedProblem = keyof typeof problems;

export const plantedProblems = Object.keys(problems) as readonly PlantedProblem[];

/** A problem of that name. */
export function plantedProblem(name: PlantedProblem): Problem {
  return problems[name](seededRandom(seed));
}
