import { describe, expect, it } from 'vitest';
import {
  KernelFault,
  runCase,
  resolvePromises,
  UnsupportedProblem,
  type AttentionKernel,
  type KernelPromises,
  type LawId,
} from '../../../properties/index.js';
import { KernelAbsent } from '../../../properties/laws/index.js';
import {
  kernelGradients,
  kernelOutputs,
  sharedGradients,
} from '../../../properties/laws/kernel-under-test.js';
import { replaceElements, specialValuesOf } from '../../../properties/laws/replace-elements.js';
import {
  mendableRun,
  mendedKernel,
  nonFiniteOutputs,
  rowsWithoutKeys,
  specialInputs,
  wrongLse,
  type Mend,
} from '../../../properties/suite/mended-kernel.js';
import { decodeTensor, plainFormats, type Tensor } from '../../../src/formats/index.js';
import { problemShape, type Problem } from '../../../src/problem/index.js';
import { RequestError } from '../../../src/request-error.js';
import { tensor } from '../../setup/problems.js';
import { definedBackward } from '../gradients/defined-backward.js';
import { definedKernel, variedProblem } from '../laws/try-law.js';

const sizes = { batch: 1, heads: 2, kvHeads: 1, queries: 3, keys: 4, dim: 2, vDim: 2 } as const;
const problem = variedProblem({}, sizes);
const dout = tensor('fp32', [1, 2, 3, 2], (i) => 1 + i / 8);

function tried(
  kernel: AttentionKernel,
  id: LawId = 'determinism',
  promises: KernelPromises = {},
  posed: Problem = problem,
) {
  const resolved = resolvePromises({ formats: ['fp32'], ...promises });
  return runCase(id, { problem: posed, dout, choice: 0 }, kernel, resolved, { diagnose: false });
}

/** The kernel, whose run of a number gives something else. */
function giving(
  run: number,
  change: (given: Awaited<ReturnType<typeof definedKernel>>) => unknown,
): AttentionKernel {
  let runs = 0;
  return async (posed, conditions) => {
    const given = await definedKernel(posed, conditions);
    return (runs++ === run ? change(given) : given) as typeof given;
  };
}

describe('what a kernel gives', () => {
  const short = (of: Tensor, shape: readonly number[]): Tensor => ({
    ...of,
    shape,
    data: of.data.slice(
      0,
      shape.reduce((a, b) => a * b, 1),
    ),
  });

  it.each([0, 1])('is at fault where it is no output of the problem, in run %i', async (run) => {
    const faults: readonly (readonly [
      RegExp,
      (given: Awaited<ReturnType<typeof definedKernel>>) => unknown,
    ])[] = [
      [/shape/i, ({ out, lse }) => ({ out: short(out, [1, 2, 2, 2]), lse })],
      [/shape/i, ({ out, lse }) => ({ out, lse: short(lse!, [1, 2, 2]) })],
      [/the outputs are not/, () => null],
      [/the outputs are not/, ({ lse }) => ({ lse })],
      [/the outputs are not/, ({ out }) => ({ out, lse: 3 })],
      [
        /the kernel threw: lost/,
        () => {
          throw new Error('lost');
        },
      ],
      [
        /the kernel threw: text/,
        () => {
          throw 'text' as unknown as Error;
        },
      ],
    ];
    for (const [words, change] of faults) {
      const result = await tried(giving(run, change));
      expect(result).toMatchObject({
        status: 'violated',
        isSlow: false,
        diagnosis: null,
        hint: null,
      });
      if (result.status !== 'violated') return;
      expect(result.statement).toMatch(words);
      expect(result.fault).toBe(result.statement);
      expect(result.runs).toHaveLength(run);
    }
  });

  it('needs an LSE where one is promised, and none where not', async () => {
    const without = giving(0, ({ out }) => ({ out, lse: null }));
    expect((await tried(without, 'determinism', { lse: false })).status).toBe('held');
    const promised = await tried(
      giving(0, ({ out }) => ({ out })),
      'determinism',
      { lse: true },
    );
    expect(promised.status === 'violated' && promised.fault).toBe(
      'the kernel gave no LSE, though it promises one',
    );
  });

  it('may be that it declines, is slow, or is not there', async () => {
    const throwing =
      (error: Error): AttentionKernel =>
      () => {
        throw error;
      };
    expect(await tried(throwing(new UnsupportedProblem('too large')))).toEqual({
      status: 'unsupported',
      reason: 'too large',
    });
    expect(await tried(throwing(new KernelFault('no answer', { isSlow: true })))).toMatchObject({
      status: 'violated',
      fault: 'no answer',
      isSlow: true,
    });
    expect(await tried(throwing(new KernelFault('ended')))).toMatchObject({
      fault: 'ended',
      isSlow: false,
    });
    await expect(tried(throwing(new KernelAbsent('not there')))).rejects.toThrow(KernelAbsent);
    expect(await tried(definedKernel, 'determinism', { laws: { determinism: 'none' } })).toEqual({
      status: 'unsupported',
      reason: 'the law is not promised',
    });
    const held = await tried(definedKernel);
    expect(held.status === 'held' && held.runs).toHaveLength(2);
  });

  it('is three gradients of one format, in their shapes', async () => {
    const law = 'gradients-determinism';
    const promises = { gradients: true, deterministic: true } as const;
    const backward =
      (change: (given: Record<string, unknown>) => Record<string, unknown>): AttentionKernel =>
      async (posed, conditions) =>
        change({
          ...(await definedBackward()(posed, conditions)),
        }) as unknown as ReturnType<AttentionKernel>;
    expect(
      (
        await tried(
          backward((given) => given),
          law,
          promises,
        )
      ).status,
    ).toBe('held');
    for (const name of ['dq', 'dk', 'dv'] as const) {
      const missing = await tried(
        backward((given) => ({ ...given, [name]: undefined })),
        law,
        promises,
      );
      expect(missing.status === 'violated' && missing.fault).toContain(
        `(${name}), though it promises gradients`,
      );
      const wrong = await tried(
        backward((given) => ({ ...given, [name]: tensor('fp64', [1, 2, 1, 2], () => 0) })),
        law,
        promises,
      );
      expect(wrong.status === 'violated' && wrong.fault).toMatch(/shape/i);
    }
    const mixed = await tried(
      backward((given) => ({ ...given, dv: tensor('fp32', [1, 1, 4, 2], () => 0) })),
      law,
      promises,
    );
    expect(mixed.status === 'violated' && mixed.fault).toBe(
      'the kernel gave dQ in fp64 and dV in fp32; gradients have one format',
    );
    await expect(
      runCase(
        law,
        { problem, choice: 0 },
        backward((given) => given),
        resolvePromises({ ...promises, formats: ['fp32'] }),
        { diagnose: false },
      ),
    ).rejects.toThrow(RequestError);
  });

  it('is read as it is: outputs, gradients, and shared ones of what the problem has', () => {
    const out = tensor('fp32', [1], () => 1);
    expect(kernelOutputs({ out })).toEqual({ out, lse: null });
    expect(kernelOutputs({ out, lse: out })).toEqual({ out, lse: out });
    expect(() => kernelGradients({ out })).toThrow(KernelFault);
    const of = { out, dq: out, dk: out, dv: out, dbias: out, dsink: out };
    expect(kernelGradients(of)).toEqual({ dq: out, dk: out, dv: out });
    const bias = { ...problem, bias: tensor('fp32', [3, 4], () => 0) };
    const sink = { ...problem, sink: { logits: tensor('fp32', [2], () => 0), inLse: true } };
    expect([
      sharedGradients(problem, of),
      sharedGradients(bias, of),
      sharedGradients(sink, of),
    ]).toEqual([{}, { dbias: out }, { dsink: out }]);
    expect(sharedGradients(bias, { out, dbias: null })).toEqual({});
    expect(sharedGradients(sink, { out })).toEqual({});
    expect(() => sharedGradients(sink, { out, dsink: 3 as unknown as Tensor })).toThrow(
      KernelFault,
    );
    for (const name of plainFormats)
      expect(specialValuesOf(name)).toEqual(name === 'e4m3' ? [NaN] : [NaN, Infinity, -Infinity]);
  });

  it('may have elements replaced, by place, in tensors of rank 3 and 4 and of 64 bits', () => {
    for (const [format, one] of [
      ['fp64', 0x3ff0000000000000n],
      ['fp32', 0x3f800000],
      ['e5m2', 0x3c],
    ] as const) {
      const four = tensor(format, [2, 3, 2, 2], () => 0);
      for (const of of [four, { ...four, shape: [6, 2, 2] }]) {
        const changed = replaceElements(of, ({ batch, head, row, column }) => {
          const index = of.shape.length === 4 ? batch * 3 + head : head;
          expect(of.shape.length === 4 || batch === 0).toBe(true);
          return index === 4 && row === 1 && column === 0 ? one : null;
        });
        expect([...decodeTensor(changed)].flatMap((x, i) => (x === 1 ? [i] : []))).toEqual([18]);
        expect(decodeTensor(of).every((x) => x === 0)).toBe(true);
      }
    }
  });
});

describe('a kernel that is put right in one way', () => {
  const empty = variedProblem({ causal: true }, { ...sizes, keys: 2 });
  const special = { ...problem, v: tensor('fp32', [1, 1, 4, 2], (i) => (i === 1 ? NaN : i)) };

  /** What is wrong with a kernel before and after it is mended, and what it gives then. */
  async function mended(
    mend: Mend,
    posed: Problem,
    change: (out: Float32Array, lse: Float32Array) => void,
  ) {
    const kernel: AttentionKernel = async (asked) => {
      const given = await definedKernel(asked);
      change(given.out.data as Float32Array, given.lse!.data as Float32Array);
      return given;
    };
    const wrongIn = async (of: AttentionKernel) => {
      const outputs = kernelOutputs(await of(posed));
      const [out, lse] = [decodeTensor(outputs.out), decodeTensor(outputs.lse!)];
      return {
        wrong: mend.wrong(
          mendableRun({
            configuration: null,
            problem: posed,
            shape: problemShape(posed),
            outputs,
            out,
            lse,
          }),
        ),
        out,
        lse,
      };
    };
    const exact = await definedKernel(posed);
    const after = await wrongIn(mendedKernel(kernel, mend));
    return {
      before: (await wrongIn(kernel)).wrong,
      after: after.wrong,
      out: after.out,
      lse: after.lse,
      exact: [decodeTensor(exact.out), decodeTensor(exact.lse!)],
    };
  }

  it('of rows without keys', async () => {
    for (const [change, words] of [
      [(out: Float32Array) => (out[6] = 2), 'O is not 0 on rows without keys'],
      [
        (_: Float32Array, lse: Float32Array) => (lse[3] = 0),
        'the LSE is not −∞ on rows without keys',
      ],
      [(out: Float32Array) => (out[0] = NaN), 'NaN on rows without keys'],
      [(_: Float32Array, lse: Float32Array) => (lse[0] = NaN), 'NaN on rows without keys'],
    ] as const) {
      const { before, after, out, lse, exact } = await mended(rowsWithoutKeys, empty, change);
      expect([before, after]).toEqual([words, null]);
      expect([out, lse]).toEqual(exact);
    }
    // Rows with keys stay as they are.
    const { before, out } = await mended(rowsWithoutKeys, empty, (values) => (values[2] = 9));
    expect([before, out[2]]).toEqual([null, 9]);
  });

  it('of the LSE, of special inputs, and of results that are not finite', async () => {
    const lse = await mended(wrongLse, problem, (out, values) => {
      out[1] = 5;
      values[1] = 5;
    });
    expect(lse.before).toBe('the LSE is wrong, O is not');
    expect([lse.lse, lse.out[1]]).toEqual([lse.exact[1], 5]);
    const ofSpecial = await mended(specialInputs, special, (out) => (out[0] = 5));
    expect([ofSpecial.before, ofSpecial.out]).toEqual([
      'what becomes of NaN and ∞ in the inputs',
      ofSpecial.exact[0],
    ]);
    const usual = await mended(specialInputs, problem, (out) => (out[0] = 5));
    expect([usual.before, usual.out[0]]).toEqual([null, 5]);
    for (const change of [
      (out: Float32Array) => (out[3] = NaN),
      (_: Float32Array, values: Float32Array) => (values[2] = Infinity),
    ]) {
      const nonFinite = await mended(nonFiniteOutputs, problem, change);
      expect([nonFinite.before, nonFinite.after]).toEqual([
        'NaN or ∞ where exact attention is finite',
        null,
      ]);
      expect([nonFinite.out, nonFinite.lse]).toEqual(nonFinite.exact);
    }
    const finite = await mended(nonFiniteOutputs, problem, (out) => (out[3] = 9));
    expect([finite.before, finite.out[3]]).toEqual([null, 9]);
    const where = await mended(nonFiniteOutputs, special, () => undefined);
    expect([where.before, Number.isNaN(where.out[1])]).toEqual([null, true]);
  });
});
