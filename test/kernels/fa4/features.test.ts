import { describe, expect, it } from 'vitest';
import { createFa4Forward, fa4Model, runKernelModel } from '../../../kernels/index.js';
import { decodeTensor } from '../../../src/formats/index.js';
import type { Problem, Tensor } from '../../../src/problem/index.js';
import { sampled, testSeed } from '../../setup/effort.js';
import {
  definedAttention,
  featureProblems,
  normalProblem,
  normalTensor,
  seededRandom,
} from '../features/index.js';

/** What FlashAttention-4 has; of each problem the least. */
const taken = [
  'causal with a softcap',
  'a mask',
  'a mask of keys',
  'a bias',
  'ALiBi',
  'ALiBi of each batch',
  'a sink',
  'documents',
  'a prefix',
  'a block mask of tiles',
  'packed sequences',
  'packed sequences with a bias and a sink',
  'padded sequences',
  'pages of 16',
];
const drawn = (name: string): Problem => featureProblems[name](seededRandom(testSeed));
const draw = (given: Parameters<typeof normalProblem>[1] = {}): Problem =>
  normalProblem(seededRandom(testSeed), { batch: 1, heads: 1, kvHeads: 1, ...given });

describe('the forward on features', () => {
  it.each(sampled(taken, 5))(
    'in WebAssembly has the bits of its definition: %s',
    (name) => {
      const problem = drawn(name);
      const fast = createFa4Forward(problem);
      const plain = createFa4Forward(problem, { execution: 'plain' });
      expect(plain.tiles).toBe(fast.tiles);
      for (const tile of sampled(
        Array.from({ length: fast.tiles }, (_, i) => i),
        2,
      )) {
        const [a, b] = [fast.runTile(tile), plain.runTile(tile)];
        expect(a.out).toEqual(b.out);
        expect(a.lse).toEqual(b.lse);
        expect(a.counters).toEqual(b.counters);
      }
    },
    60_000,
  );

  it.each([
    ['a sink beside the LSE', 'fa4 has the sink in its LSE'],
    ['a bias that hides', 'one score_mod, but the problem has softcap and bias'],
    ['a block mask', 'takes multiples of 128 and 128'],
    ['dropout', 'fa4 takes no dropout'],
    ['factors', 'q_descale differs within a head of K'],
    ['a sample of rows', 'fa4 takes no sample of rows'],
  ])('refuses %s', (name, message) => {
    expect(() => fa4Model.prepare(drawn(name), new Map())).toThrow(message);
  });
});

const withoutSequences = ({ sequences: _, stored: __, ...rest }: Problem): Problem => rest;
/** Rows of the only batch of a tensor [1, heads, rows, dim]. */
function rowsOf(tensor: Tensor, first: number, rows: number): Tensor {
  const [, heads, all, dim] = tensor.shape;
  const data = Array.from({ length: heads }, (_, head) =>
    Array.from(tensor.data.subarray((head * all + first) * dim, (head * all + first + rows) * dim)),
  );
  return { ...tensor, shape: [1, heads, rows, dim], data: Uint16Array.from(data.flat()) };
}

it('a packed sequence has the bits that it has alone', () => {
  const problem = drawn('packed sequences');
  const together = runKernelModel('fa4', problem);
  for (const { firstQuery, queries, firstKey, keys } of problem.sequences ?? []) {
    if (queries === 0 || keys === 0) continue;
    const alone: Problem = {
      ...withoutSequences(problem),
      q: rowsOf(problem.q, firstQuery, queries),
      k: rowsOf(problem.k, firstKey, keys),
      v: rowsOf(problem.v, firstKey, keys),
    };
    const { out } = runKernelModel('fa4', alone);
    expect(out.data).toEqual(rowsOf(together.out, firstQuery, queries).data);
  }
});

it('a sink of −∞ changes nothing, and a lone one is the LSE of rows without keys', () => {
  const problem: Problem = { ...draw({ queries: 150 }), causal: true };
  const sink = (logit: number) => ({
    logits: { format: 'fp32', shape: [1], data: Float32Array.of(logit) } as const,
    inLse: true,
  });
  const plain = runKernelModel('fa4', problem);
  expect(runKernelModel('fa4', { ...problem, sink: sink(-Infinity) })).toEqual(plain);
  const { lse, out } = runKernelModel('fa4', { ...problem, sink: sink(2.5) });
  // The first ten queries of 150 see none of 140 keys.
  for (let row = 0; row < 10; row++) expect(lse.data[row]).toBeCloseTo(2.5, 5);
  expect(out.data.slice(0, 10 * 16).every((x) => x === 0)).toBe(true);
});

it('a bias of 0 has the bits of a mask alone but for where the scale enters', () => {
  const problem = draw();
  const biased = { ...problem, bias: { ...normalTensor(seededRandom(1), 'fp32', [1]) } };
  biased.bias.data.fill(0);
  const [plain, zero] = [runKernelModel('fa4', problem), runKernelModel('fa4', biased)];
  const exact = definedAttention(problem);
  for (const { lse } of [plain, zero])
    lse.data.forEach((x, i) => expect(Math.abs(x - exact.lse[i])).toBeLessThan(2 ** -13));
});

describe('the only key of a row has as LSE', () => {
  const { fround } = Math;
  const rows = 128;
  const scale = fround(0.03);
  const random = seededRandom(testSeed);
  const alone: Problem = { ...draw({ queries: rows, keys: 1, dim: 16, vDim: 16 }), scale };
  // One product a row, which is exact in fp32; times the scale and with what is added it is exact in fp64. Scores are small enough
  // for what their exponents lose to rounding to leave a weight of exactly 1.
  alone.q.data.forEach((_, i) => i % 16 !== 0 && (alone.q.data[i] = 0));
  const [q, k] = [alone.q, alone.k].map((one) => decodeTensor(one));
  const products = Array.from({ length: rows }, (_, i) => q[16 * i] * k[0]);
  const ofScore = (score: number) => fround(fround(score * fround(Math.LOG2E)) * fround(Math.LN2));

  it('that of a score to which the bias is added as it is scaled, in one operation', () => {
    const bias = normalTensor(random, 'fp32', [1, 1, rows, 1], 0.05);
    const { lse } = runKernelModel('fa4', { ...alone, bias });
    const fused = products.map((s, i) => ofScore(fround(s * scale + bias.data[i])));
    const apart = products.map((s, i) => ofScore(fround(fround(s * scale) + bias.data[i])));
    expect(Array.from(lse.data)).toEqual(fused);
    expect(fused).not.toEqual(apart);
  });

  it('that of a score from which ALiBi is subtracted, in three operations', () => {
    const slope = fround(0.003);
    const alibiSlopes: Tensor = { format: 'fp32', shape: [1], data: Float32Array.of(slope) };
    const { lse } = runKernelModel('fa4', { ...alone, alibiSlopes });
    // The last row is on the diagonal.
    const distances = products.map((_, i) => rows - 1 - i);
    const apart = products.map((s, i) =>
      ofScore(fround(fround(s * scale) - fround(slope * distances[i]))),
    );
    const fused = products.map((s, i) => ofScore(fround(s * scale - fround(slope * distances[i]))));
    expect(Array.from(lse.data)).toEqual(apart);
    expect(apart).not.toEqual(fused);
  });
});

it('lists of all blocks in order are no list, and another order has other bits', () => {
  const problem = draw({ queries: 128, keys: 640, dim: 64, vDim: 64 });
  const listed = (indices: readonly number[]): Problem => ({
    ...problem,
    blockMask: {
      counts: { shape: [1, 1, 1], data: Int32Array.of(indices.length) },
      indices: { shape: [1, 1, 1, indices.length], data: Int32Array.from(indices) },
      blockQueries: 128,
      blockKeys: 128,
    },
  });
  const plain = runKernelModel('fa4', problem);
  expect(runKernelModel('fa4', listed([0, 1, 2, 3, 4])).out).toEqual(plain.out);
  expect(runKernelModel('fa4', listed([4, 3, 2, 1, 0])).lse.data).not.toEqual(plain.lse.data);
});

it('a mask that is causal has the bits of causal where the tuning is one', () => {
  const sizes = { queries: 140, keys: 150 };
  const causal = { ...draw(sizes), causal: true };
  const seen = Array.from({ length: 140 * 150 }, (_, i) =>
    (i % 150) - Math.floor(i / 150) <= 10 ? 1 : 0,
  );
  const masked: Problem = {
    ...causal,
    causal: false,
    mask: { shape: [140, 150], data: Uint8Array.from(seen) },
  };
  const [a, b] = [runKernelModel('fa4', causal), runKernelModel('fa4', masked)];
  expect(b.out).toEqual(a.out);
  expect(b.lse).toEqual(a.lse);
});

it('packed groups of more than 64 dimensions have a tuning of their own', () => {
  const grouped = draw({ heads: 4, kvHeads: 2, dim: 128, vDim: 128 });
  const settings = (packGqa?: string) =>
    fa4Model.prepare(grouped, new Map(packGqa === undefined ? [] : [['packGqa', packGqa]]))
      .settings;
  expect(settings()).toMatchObject({ packGqa: true, 'exp2.frequency': 10 });
  expect(settings('false')).toMatchObject({ packGqa: false, 'exp2.frequency': 16 });
});
