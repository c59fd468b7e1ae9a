import { describe, expect, it } from 'vitest';
import { fa2Model, runBackward } from '../../../kernels/index.js';
import { fa2BackwardRecipe } from '../../../kernels/fa2/backward.js';
import { createBackward } from '../../../kernels/online-softmax/backward/backward.js';
import { runKernelModel } from '../../../kernels/models.js';
import { rowProductSum } from '../../../kernels/online-softmax/backward/row-values.js';
import type { BackwardRecipe } from '../../../kernels/online-softmax/backward/recipe.js';
import { decodeToFloat64, formats, type Tensor } from '../../../src/formats/index.js';
import { problemShape, type Problem } from '../../../src/problem/index.js';
import { bellShaped } from '../../audit/gradients/gradient-case.js';
import { filledProblem, sequencesOf, tensor, type ProblemFrame } from '../../setup/problems.js';

/** A problem with dO and what fa2 stores of it. */
function prepared(frame: ProblemFrame, changes: Partial<Problem> = {}) {
  const problem = filledProblem(frame, bellShaped(17), changes);
  const { batch, heads, queries, vDim } = problemShape(problem);
  const dout = tensor(problem.q.format, [batch, heads, queries, vDim], bellShaped(23));
  const { out, lse } = runKernelModel('fa2', problem);
  return { problem, dout, forward: { out, lse } };
}

const small: Partial<BackwardRecipe> = { tiling: { queries: 16, keys: 16 } };

/** The gradients of all key/value heads, in blocks of 16 unless a recipe says otherwise. */
function gradients(
  { problem, dout, forward }: ReturnType<typeof prepared>,
  changes: Partial<BackwardRecipe> = {},
  options: {
    readonly execution?: 'plain' | 'webassembly';
    readonly build?: 'pytorch' | 'flash-attn';
    readonly deterministic?: boolean;
  } = {},
) {
  const shape = problemShape(problem);
  const { build = 'pytorch', deterministic = false, execution = 'webassembly' } = options;
  const recipe = fa2BackwardRecipe(problem, shape, problem.q.format as 'bf16' | 'fp16', {
    architecture: 'sm_90',
    build,
    multiprocessors: 132,
    deterministic,
  });
  const tensors = { dout, ...forward };
  const all = { ...recipe, ...small, ...changes };
  const { run } = createBackward(problem, shape, all, tensors, { execution });
  return Array.from({ length: shape.batch * shape.kvHeads }, (_, kvHead) => run(kvHead));
}

const cases: readonly (readonly [string, ProblemFrame, Partial<Problem>])[] = [
  ['ragged', { queries: 21, keys: 37, dim: 32 }, {}],
  ['fp16', { format: 'fp16', queries: 18, keys: 33, dim: 40 }, {}],
  ['causal', { queries: 45, keys: 40, dim: 32 }, { causal: true }],
  ['window', { queries: 40, keys: 40, dim: 32 }, { window: { left: 9, right: 3 } }],
  ['grouped', { heads: 4, kvHeads: 2, queries: 20, keys: 19, dim: 32 }, {}],
  [
    'packed',
    { queries: 40, keys: 50, dim: 32 },
    {
      sequences: sequencesOf([
        [17, 20],
        [23, 30],
      ]),
    },
  ],
];

describe("FlashAttention-2's backward", () => {
  it.each(cases)('in WebAssembly has the bits of its definition: %s', (_, frame, changes) => {
    const problem = prepared(frame, changes);
    for (const build of ['pytorch', 'flash-attn'] as const) {
      const plain = gradients(problem, {}, { build, execution: 'plain' });
      expect(gradients(problem, {}, { build })).toEqual(plain);
    }
  });

  it('keeps weights below 2^-126, as its exponential does, where the package flushes them', () => {
    const problem = filledProblem({ queries: 1, keys: 1, dim: 8 }, () => 0, { scale: 1 });
    const forward = {
      out: tensor('bf16', [1, 1, 1, 8], () => 0),
      lse: tensor('fp32', [1, 1, 1], () => 90),
    };
    const dout = tensor('bf16', [1, 1, 1, 8], () => 1);
    const given = { problem, dout, forward };
    const dv = (build: 'pytorch' | 'flash-attn') =>
      decodeToFloat64(gradients(given, {}, { build })[0].dv, formats.bf16)[0];
    expect(dv('flash-attn')).toBe(0);
    expect(dv('pytorch')).toBeGreaterThan(0);
    expect(dv('pytorch')).toBeLessThan(2 ** -126);
  });

  /** Scores of 0, an O of 0 and an LSE of 0: all weights and, with a dO and a V of ones in the first column, all dS are 1. */
  const ofOnes = (frame: ProblemFrame, keyOf: (key: number) => number) => {
    const { queries, dim } = frame;
    const firstColumn = (i: number): number => (i % dim === 0 ? 1 : 0);
    return {
      problem: filledProblem(
        frame,
        { q: () => 0, k: (i) => keyOf(Math.floor(i / dim)), v: firstColumn },
        { scale: 1 },
      ),
      dout: tensor('bf16', [1, 1, queries, dim], firstColumn),
      forward: {
        out: tensor('bf16', [1, 1, queries, dim], () => 0),
        lse: tensor('fp32', [1, 1, queries], () => 0),
      },
    };
  };
  const first = (patterns: Uint16Array): number => decodeToFloat64(patterns, formats.bf16)[0];

  it('goes through the queries from the last block to the first', () => {
    const frame = { queries: 48, keys: 1, dim: 8 };
    const ofQuery = new Map([
      [47, 2 ** 30],
      [31, -(2 ** 30)],
      [0, 1],
    ]);
    const dout = tensor('bf16', [1, 1, 48, 8], (i) => ofQuery.get(Math.floor(i / 8)) ?? 0);
    const given = { ...ofOnes(frame, () => 0), dout };
    expect(first(gradients(given)[0].dv)).toBe(1);
    expect(first(gradients(given, { chainOrder: 'ascending' })[0].dv)).toBe(0);
  });

  it('deals blocks of keys to its buffers in turn and adds these at the end', () => {
    const ofKey = new Map([
      [0, 2 ** 30],
      [16, 1],
      [32, -(2 ** 30)],
    ]);
    const given = ofOnes({ queries: 4, keys: 48, dim: 8 }, (key) => ofKey.get(key) ?? 0);
    const dq = (queryBuffers: number) =>
      first(gradients(given, { queryBuffers }, { deterministic: true })[0].dq);
    // In ascending order 2^30 swallows the 1, whether there is one buffer or one for each block; of two the first has both 2^30.
    expect([1, 3, 132].map(dq)).toEqual([0, 0, 0]);
    expect(dq(2)).toBe(1);
  });

  it('sums D run by run within a thread, and the threads that lie farthest apart first', () => {
    const law = fa2BackwardRecipe(
      ofOnes({ queries: 1, keys: 1, dim: 8 }, () => 0).problem,
      { batch: 1, heads: 1, kvHeads: 1, groupSize: 1, queries: 1, keys: 1, qkDim: 8, vDim: 8 },
      'bf16',
      { architecture: 'sm_90', build: 'pytorch', multiprocessors: 132, deterministic: false },
    ).productSum;
    const ones = new Float64Array(8).fill(1);
    const sum = (changes: Partial<typeof law>, ...row: number[]) =>
      rowProductSum({ ...law, ...changes }, Float64Array.from(row), ones);
    // Two threads with columns 0, 1, 4, 5 and the others; 2^30 swallows a 1 that is added to it.
    const two = { run: 2, width: () => 4 };
    expect(sum(two, 2 ** 30, 1, 0, 0, -(2 ** 30), 0, 0, 0)).toBe(0);
    // Four threads with two columns.
    const four = { run: 2, width: () => 8 };
    expect(sum(four, 2 ** 30, 0, 1, 0, -(2 ** 30), 0, 0, 0)).toBe(1);
    expect(law.run).toBe(8);
    expect([32, 40, 64, 72, 96, 128, 192, 256].map(law.width)).toEqual([
      ...[32, 64, 64, 32, 32, 64, 64, 64],
    ]);
  });

  it('has as many buffers as the GPU has room for thread blocks', () => {
    const problem = prepared({ heads: 3, queries: 4, keys: 4, dim: 32 });
    const buffers = (deterministic: boolean, changes: Partial<Problem> = {}) => {
      const changed = { ...problem.problem, ...changes };
      return fa2BackwardRecipe(changed, problemShape(changed), 'bf16', {
        architecture: 'sm_90',
        build: 'pytorch',
        multiprocessors: 132,
        deterministic,
      }).queryBuffers;
    };
    expect(buffers(false)).toBe(1);
    expect(buffers(true)).toBe(44);
    const sequences = sequencesOf([
      [2, 2],
      [2, 2],
    ]);
    expect(buffers(true, { sequences })).toBe(22);
  });

  it('rounds dK and dV of every head of a group before they are added', () => {
    const problem = prepared({ heads: 2, kvHeads: 1, queries: 20, keys: 19, dim: 32 });
    const [{ dk, dv }] = gradients(problem);
    const [summed] = gradients(problem, { groupOrder: 'ascending' });
    expect(dk).not.toEqual(summed.dk);
    expect(dv).not.toEqual(summed.dv);
  });

  it('refuses what the kernel does not take', () => {
    const { problem, dout, forward } = prepared({ queries: 4, keys: 4, dim: 32 });
    const run = (changes: Partial<Problem>, settings: Readonly<Record<string, string>> = {}) =>
      runBackward(
        'fa2',
        { ...problem, ...changes },
        { dout, forward },
        new Map(Object.entries(settings)),
      );
    expect(() => run({ softcap: 3 })).toThrow(/no softcap/);
    expect(() => run({}, { deterministic: 'perhaps' })).toThrow(/deterministic/);
    const other = tensor('fp16', [1, 1, 4, 32], () => 1);
    const inputs = { dout: other, forward };
    expect(() => runBackward('fa2', problem, inputs)).toThrow(/^q is bf16 but dout is fp16/);
    const wide: Tensor = { ...forward.out, format: 'fp16' };
    expect(() =>
      fa2Model.backward!.prepare(problem, { dout, forward: { ...forward, out: wide } }, new Map()),
    ).toThrow(/^out is fp16; the backward of fa2 reads bf16/);
  });
});
