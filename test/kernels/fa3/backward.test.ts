import { describe, expect, it } from 'vitest';
import {
  fa3BackwardRecipe,
  fa3BackwardMask,
  fa3BackwardTiling,
  fa3ColumnsOfRow,
} from '../../../kernels/fa3/backward.js';
import { fa3Model, runBackward, runKernelModel } from '../../../kernels/index.js';
import { createBackward } from '../../../kernels/online-softmax/backward/backward.js';
import { matchOrders } from '../../../kernels/online-softmax/backward/order-match.js';
import type { BackwardRecipe } from '../../../kernels/online-softmax/backward/recipe.js';
import { decodeToFloat64, formats, type Tensor } from '../../../src/formats/index.js';
import { problemShape, type Problem } from '../../../src/problem/index.js';
import { bellShaped } from '../../audit/gradients/gradient-case.js';
import { filledProblem, tensor, type ProblemFrame } from '../../setup/problems.js';

/** A problem with dO and what fa3 stores of it. */
function prepared(frame: ProblemFrame, changes: Partial<Problem> = {}) {
  const problem = filledProblem(frame, bellShaped(19), changes);
  const { batch, heads, queries, vDim } = problemShape(problem);
  const dout = tensor(problem.q.format, [batch, heads, queries, vDim], bellShaped(29));
  const { out, lse } = runKernelModel('fa3', problem);
  return { problem, dout, forward: { out, lse } };
}

interface Options {
  readonly execution?: 'plain' | 'webassembly';
  readonly deterministic?: boolean;
}

/** The backward in blocks of 16, unless a recipe says otherwise. */
function backwardOf(
  { problem, dout, forward }: ReturnType<typeof prepared>,
  changes: Partial<BackwardRecipe> = {},
  { execution = 'webassembly', deterministic = false }: Options = {},
) {
  const shape = problemShape(problem);
  const format = problem.q.format as 'bf16' | 'fp16';
  const recipe = fa3BackwardRecipe(problem, shape, format, { deterministic });
  const all = { ...recipe, tiling: { queries: 16, keys: 16 }, ...changes };
  return createBackward(problem, shape, all, { dout, ...forward }, { execution });
}

const cases: readonly (readonly [string, ProblemFrame, Partial<Problem>])[] = [
  ['ragged', { queries: 21, keys: 37, dim: 32 }, {}],
  ['fp16', { format: 'fp16', queries: 18, keys: 33, dim: 40 }, {}],
  ['causal', { queries: 45, keys: 40, dim: 32 }, { causal: true }],
  ['window', { queries: 40, keys: 40, dim: 32 }, { window: { left: 9, right: 3 } }],
  ['grouped', { heads: 4, kvHeads: 2, queries: 20, keys: 19, dim: 32 }, { scale: 0.1 }],
];

/** The heads of a tensor of one batch, in an order. */
function ofHeads({ shape, format, data }: Tensor, order: readonly number[]): Tensor {
  const size = data.length / order.length;
  const ordered = data.slice();
  order.forEach((head, i) => {
    for (let at = 0; at < size; at++) ordered[i * size + at] = data[head * size + at];
  });
  return { shape, format, data: ordered } as Tensor;
}

/** A group of three heads of which the last takes back what the first, a thousand times the second, adds to dK and dV. */
function cancelling(scale: number) {
  const frame = { heads: 3, kvHeads: 1, queries: 20, keys: 19, dim: 32 };
  const { problem } = prepared(frame, { scale });
  const q = ofHeads(problem.q, [0, 1, 0]);
  const size = frame.queries * frame.dim;
  const drawn = Array.from({ length: 2 * size }, bellShaped(29));
  const factors = [1024, 1, -1024];
  const dout = tensor('bf16', [1, 3, frame.queries, frame.dim], (i) => {
    const head = Math.floor(i / size);
    return factors[head] * drawn[(head % 2) * size + (i % size)];
  });
  const { out, lse } = runKernelModel('fa3', { ...problem, q });
  return { problem: { ...problem, q }, dout, forward: { out, lse } };
}

/** Scores, O and LSE of 0: all weights are 1 and, with a dO and a V of ones in the first column, so are all dS. */
function ofOnes(frame: ProblemFrame, keyOf: (key: number) => number, changes: Partial<Problem>) {
  const { queries, dim } = frame;
  const firstColumn = (i: number): number => (i % dim === 0 ? 1 : 0);
  const parts = { q: () => 0, k: (i: number) => keyOf(Math.floor(i / dim)), v: firstColumn };
  return {
    problem: filledProblem(frame, parts, { scale: 1, ...changes }),
    dout: tensor('bf16', [1, 1, queries, dim], firstColumn),
    forward: {
      out: tensor('bf16', [1, 1, queries, dim], () => 0),
      lse: tensor('fp32', [1, 1, queries], () => 0),
    },
  };
}
const first = (patterns: Uint16Array): number => decodeToFloat64(patterns, formats.bf16)[0];

describe("FlashAttention-3's backward", () => {
  it.each(cases)('in WebAssembly has the bits of its definition: %s', (_, frame, changes) => {
    const given = prepared(frame, changes);
    const plain = backwardOf(given, {}, { execution: 'plain' });
    const quick = backwardOf(given);
    for (let head = 0; head < given.problem.k.shape.slice(0, -2).reduce((a, b) => a * b, 1); head++)
      expect(quick.run(head)).toEqual(plain.run(head));
  });

  it('adds tiles of dQ in ascending order, under a causal mask in descending order', () => {
    // From the first on 2^30 swallows the 1; from the last on the large ones cancel before it comes.
    const ofKey = new Map([
      [0, 1],
      [16, 2 ** 30],
      [32, -(2 ** 30)],
    ]);
    const dq = (changes: Partial<Problem>): number => {
      const frame = { queries: 1, keys: 48, dim: 8 };
      const given = ofOnes(frame, (key) => ofKey.get(key) ?? 0, changes);
      return first(backwardOf(given, {}, { deterministic: true }).run(0).dq);
    };
    expect(dq({})).toBe(0);
    expect(dq({ causal: true })).toBe(1);
  });

  it('goes through the queries from the first block to the last', () => {
    const frame = { queries: 48, keys: 1, dim: 8 };
    const ofQuery = new Map([
      [0, 2 ** 30],
      [16, -(2 ** 30)],
      [47, 1],
    ]);
    const dout = tensor('bf16', [1, 1, 48, 8], (i) => ofQuery.get(Math.floor(i / 8)) ?? 0);
    const given = { ...ofOnes(frame, () => 0, {}), dout };
    expect(first(backwardOf(given).run(0).dv)).toBe(1);
    expect(first(backwardOf(given, { chainOrder: 'descending' }).run(0).dv)).toBe(0);
  });

  it('scales dK of each head of a group before it is added, which a power of two does not show', () => {
    const dk = (scale: number, changes: Partial<BackwardRecipe> = {}) =>
      backwardOf(cancelling(scale), changes, { deterministic: true }).run(0).dk;
    expect(dk(0.1)).not.toEqual(dk(0.1, { groupScale: 'sum' }));
    expect(dk(0.125)).toEqual(dk(0.125, { groupScale: 'sum' }));
    expect(dk(0.1)).toEqual(dk(0.1, { groupScale: 'each' }));
  });

  it('finds dK and dV of heads that are added in another order, and those of no order', () => {
    const given = cancelling(0.1);
    const { problem, dout, forward } = given;
    // The first two heads change places.
    const turned = (one: Tensor): Tensor => ofHeads(one, [1, 0, 2]);
    const other = {
      problem: { ...problem, q: turned(problem.q) },
      dout: turned(dout),
      forward: { out: turned(forward.out), lse: turned(forward.lse) },
    };
    const { dk, dv } = backwardOf(other).run(0);
    const backward = backwardOf(given);
    // a + c is c + a: other bits come where the third is among the first two.
    const last = (one: Tensor): Tensor => ofHeads(one, [0, 2, 1]);
    const third = backwardOf({
      problem: { ...problem, q: last(problem.q) },
      dout: last(dout),
      forward: { out: last(forward.out), lse: last(forward.lse) },
    }).run(0);
    expect(matchOrders(backward, 0, { dq: null, dk, dv })).toMatchObject({
      dk: { someOrder: 0, noOrder: 0 },
      dv: { someOrder: 0, noOrder: 0 },
    });
    const matches = matchOrders(backward, 0, { dq: null, dk: third.dk, dv: third.dv });
    for (const match of [matches.dk, matches.dv]) {
      expect(match).toMatchObject({ undecided: 0, noOrder: 0 });
      expect(match!.someOrder).toBeGreaterThan(0);
    }
    const wrong = dk.map((pattern, i) => (i === 0 ? pattern ^ 0x4000 : pattern));
    expect(matchOrders(backward, 0, { dq: null, dk: wrong, dv }).dk).toMatchObject({ noOrder: 1 });
  });

  it('has the tiles and masks of its host code', () => {
    const tile = (dim: number, mask: 'none' | 'causal' | 'local') => {
      const { queries, keys } = fa3BackwardTiling({ qkDim: dim, vDim: dim }, mask);
      return [queries, keys];
    };
    expect([64, 96, 128, 192, 256].map((dim) => tile(dim, 'none'))).toEqual([
      [128, 128],
      [64, 128],
      [80, 128],
      [64, 96],
      [64, 80],
    ]);
    expect(tile(128, 'causal')).toEqual([64, 128]);
    expect(tile(128, 'local')).toEqual([64, 128]);
    expect([64, 96, 128, 192, 256].map(fa3ColumnsOfRow)).toEqual([64, 32, 128, 64, 128]);
    const sizes = { queries: 4, keys: 8 };
    const mask = (causal: boolean, window: Problem['window'], of = sizes) =>
      fa3BackwardMask({ causal, window }, of);
    expect(mask(false, null)).toBe('none');
    expect(mask(false, { left: 7, right: 3 })).toBe('none');
    expect(mask(false, { left: 7, right: 0 })).toBe('causal');
    expect(mask(false, { left: 6, right: 3 })).toBe('local');
    expect(mask(true, { left: 2, right: 5 })).toBe('local');
    expect(mask(true, null, { queries: 1, keys: 8 })).toBe('causal');
  });

  it('refuses what the kernel does not take', () => {
    const { problem, dout, forward } = prepared({ queries: 4, keys: 4, dim: 32 });
    const run = (changes: Partial<Problem>, settings: Readonly<Record<string, string>> = {}) =>
      runBackward(
        'fa3',
        { ...problem, ...changes },
        { dout, forward },
        new Map(Object.entries(settings)),
      );
    expect(() => run({ softcap: 3 })).toThrow(/no softcap/);
    expect(() => run({}, { deterministic: 'perhaps' })).toThrow(/deterministic/);
    expect(() => run({}, { order: 'any' })).toThrow(/order/);
    const other = tensor('fp16', [1, 1, 4, 32], () => 1);
    expect(() => runBackward('fa3', problem, { dout: other, forward })).toThrow(
      /^q is bf16 but dout is fp16/,
    );
    const wide: Tensor = { ...forward.out, format: 'fp16' };
    expect(() =>
      fa3Model.backward!.prepare(problem, { dout, forward: { ...forward, out: wide } }, new Map()),
    ).toThrow(/^out is fp16; the backward of fa3 reads bf16/);
    const large = prepared({ queries: 2, keys: 2, dim: 256 });
    expect(() =>
      runBackward('fa3', large.problem, large, new Map([['deterministic', 'true']])),
    ).toThrow(/no order for head dimension 256/);
  });
});
