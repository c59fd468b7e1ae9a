import { tensorScales, type FormatName, type Tensor } from '../../../src/formats/index.js';
import {
  storeProblem,
  type BooleanTensor,
  type IntegerTensor,
  type Problem,
  type StoredForm,
} from '../../../src/problem/index.js';
import {
  boxMullerNumbers,
  filledProblem,
  sequencesOf,
  tensor,
  type ProblemFrame,
} from '../../setup/problems.js';

/** Numbers from 0 to below 1 that depend on nothing but the seed (splitmix32). */
export type Random = () => number;

/** @param seed a whole number */
export function seededRandom(seed: number): Random {
  let state = seed | 0;
  return () => {
    state = (state + 0x9e3779b9) | 0;
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32;
  };
}

/** Normal numbers of a scale, rounded to a format. */
export function normalTensor(
  random: Random,
  format: FormatName,
  shape: readonly number[],
  scale = 1,
): Tensor {
  const normal = boxMullerNumbers(random);
  return tensor(format, shape, () => scale * normal());
}

const usual = { batch: 2, heads: 4, kvHeads: 2, queries: 19, keys: 140, dim: 16 } as const;

/** A problem of normal numbers without features. */
export function normalProblem(random: Random, given: Partial<ProblemFrame> = {}): Problem {
  return filledProblem({ ...usual, ...given }, boxMullerNumbers(random));
}

function booleans(random: Random, shape: readonly number[], share: number): BooleanTensor {
  const data = new Uint8Array(shape.reduce((a, b) => a * b, 1));
  return { shape, data: data.map(() => (random() < share ? 1 : 0)) };
}

function integers(shape: readonly number[], values: readonly number[]): IntegerTensor {
  return { shape, data: Int32Array.from(values) };
}

/** Documents of these lengths, one behind the other. */
const documents = (lengths: readonly number[]): number[] =>
  lengths.flatMap((length, document) => Array.from({ length }, () => document));

/** Blocks of keys for blocks of queries, each seen with a probability of a half; some rows of blocks see none. */
function blockMask(
  random: Random,
  {
    heads,
    queries,
    keys,
  }: { readonly heads: number; readonly queries: number; readonly keys: number },
  [blockQueries, blockKeys]: readonly [number, number],
) {
  const [rows, columns] = [Math.ceil(queries / blockQueries), Math.ceil(keys / blockKeys)];
  const indices = new Int32Array(heads * rows * columns);
  const counts = new Int32Array(heads * rows).map((_, row) => {
    const seen = Array.from({ length: columns }, (_, c) => c).filter(() => random() < 0.5);
    // In any order, as a kernel may be given them.
    indices.set(seen.reverse(), row * columns);
    return seen.length;
  });
  return {
    counts: { shape: [1, heads, rows], data: counts },
    indices: { shape: [1, heads, rows, columns], data: indices },
    blockQueries,
    blockKeys,
  };
}

const { batch, heads, queries, keys } = usual;
const packedSizes = [
  [5, 70],
  [0, 3],
  [9, 9],
  [3, 190],
  [1, 0],
] as const;

function packed(random: Random, features: Partial<Problem> = {}): Problem {
  const sequences = sequencesOf(packedSizes);
  const total = (which: 0 | 1) => packedSizes.reduce((sum, sizes) => sum + sizes[which], 0);
  return {
    ...normalProblem(random, { batch: 1, queries: total(0), keys: total(1) }),
    sequences,
    causal: true,
    ...features,
  };
}

function posed(random: Random, keys: StoredForm['keys']): Problem {
  return storeProblem(packed(random), { queries: { kind: 'packed' }, keys }, NaN);
}

const scaled = (random: Random): Problem => {
  const plain = normalProblem(random, { format: 'e4m3' });
  const factors = (tensor: Tensor): Tensor => ({
    ...tensor,
    scales: tensorScales(tensor, [
      {
        name: 'descale',
        format: 'fp32',
        values: Float64Array.from({ length: tensor.shape[1] }, () => Math.fround(0.5 + random())),
        shape: [1, tensor.shape[1], 1, 1],
        blocks: [tensor.shape[0], 1, tensor.shape[2], tensor.shape[3]],
      },
    ]),
  });
  return { ...plain, q: factors(plain.q), k: factors(plain.k), v: factors(plain.v) };
};

/** A problem of each feature, and some of several, drawn from a seed. */
export const featureProblems: Readonly<Record<string, (random: Random) => Problem>> = {
  plain: (random) => normalProblem(random),
  'other dimensions of V': (random) => normalProblem(random, { dim: 24, vDim: 8 }),
  'causal with a softcap': (random) => ({ ...normalProblem(random), causal: true, softcap: 3 }),
  'a window': (random) => ({ ...normalProblem(random), window: { left: 40, right: 3 } }),
  'a mask': (random) => ({
    ...normalProblem(random),
    mask: booleans(random, [batch, 1, queries, keys], 0.3),
  }),
  'a mask of keys': (random) => ({
    ...normalProblem(random),
    mask: booleans(random, [batch, 1, 1, keys], 0.6),
    causal: true,
  }),
  'a bias': (random) => ({
    ...normalProblem(random),
    bias: normalTensor(random, 'fp32', [1, heads, queries, keys], 2),
  }),
  'a bias that hides': (random) => {
    const bias = normalTensor(random, 'fp32', [batch, 1, 1, keys], 1);
    return {
      ...normalProblem(random),
      softcap: 2,
      bias: {
        ...bias,
        data: bias.data.map((x, i) => (i % 5 === 2 ? -Infinity : x)) as Float32Array,
      },
    };
  },
  ALiBi: (random) => ({
    ...normalProblem(random),
    causal: true,
    alibiSlopes: normalTensor(random, 'fp32', [heads], 0.1),
  }),
  'ALiBi of each batch': (random) => ({
    ...normalProblem(random),
    alibiSlopes: normalTensor(random, 'fp32', [batch, heads], 0.1),
  }),
  'a sink': (random) => ({
    ...normalProblem(random, { batch: 1, queries: 160 }),
    causal: true,
    sink: { logits: normalTensor(random, 'fp32', [heads], 4), inLse: true },
  }),
  'a sink beside the LSE': (random) => ({
    ...normalProblem(random, { batch: 1, queries: 160 }),
    causal: true,
    sink: { logits: normalTensor(random, 'bf16', [heads], 4), inLse: false },
  }),
  documents: (random) => ({
    ...normalProblem(random, { batch: 1, queries: 40, keys: 40 }),
    causal: true,
    segments: {
      queries: integers([40], documents([11, 17, 1, 11])),
      keys: integers([40], documents([11, 17, 1, 11])),
    },
  }),
  'a prefix': (random) => ({ ...normalProblem(random), causal: true, prefix: 130 }),
  'a block mask': (random) => ({
    ...normalProblem(random),
    blockMask: blockMask(random, usual, [16, 32]),
  }),
  'a block mask of tiles': (random) => {
    const sizes = { batch: 1, heads: 3, kvHeads: 1, queries: 270, keys: 530 };
    return {
      ...normalProblem(random, sizes),
      causal: true,
      blockMask: blockMask(random, sizes, [256, 128]),
    };
  },
  dropout: (random) => ({
    ...normalProblem(random),
    dropout: { kept: booleans(random, [batch, heads, queries, keys], 0.75), probability: 0.25 },
  }),
  'packed sequences': (random) => packed(random),
  'packed sequences with a bias and a sink': (random) =>
    packed(random, {
      bias: normalTensor(random, 'bf16', [packedSizes.length, heads, 1, 190]),
      sink: { logits: normalTensor(random, 'fp32', [heads], 2), inLse: true },
      window: { left: 50, right: 0 },
    }),
  'padded sequences': (random) =>
    posed(random, { kind: 'padded', spare: 3, left: [2, 0, 1, 0, 5] }),
  'pages of 16': (random) =>
    posed(random, {
      kind: 'paged',
      pageSize: 16,
      spare: 2,
      arrange: (n) => [...Array(n).keys()].reverse(),
    }),
  'pages of 256': (random) => posed(random, { kind: 'paged', pageSize: 256, spare: 1 }),
  factors: scaled,
  'a sample of rows': (random) => ({
    ...normalProblem(random, { batch: 1, queries: 3 }),
    causal: true,
    bias: normalTensor(random, 'fp32', [heads, 90, keys]),
    rows: {
      queries: Int32Array.from({ length: heads * 3 }, () => Math.floor(90 * random())),
      of: 90,
    },
  }),
};
