import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { exponentScale, fa4Configuration } from '../../../kernels/fa4/index.js';
import { createFa4Forward, exp2Pattern, findKernelModel } from '../../../kernels/index.js';
import {
  assertMatchesAttention,
  attentionProblem,
  regimeNames,
} from '../../../properties/index.js';
import { emulate } from '../../../src/emulate/index.js';
import { decodeToFloat64, formats } from '../../../src/formats/index.js';
import { type Problem, problemShape, type Tensor } from '../../../src/problem/index.js';
import { RequestError } from '../../../src/request-error.js';
import { sampled, scaled } from '../../setup/effort.js';
import { expectAttention } from '../../setup/expect-attention.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

function bf16(shape: readonly number[], value: (i: number) => number): Tensor {
  const length = shape.reduce((a, b) => a * b, 1);
  const words = new Uint32Array(Float32Array.from({ length }, (_, i) => value(i)).buffer);
  return { format: 'bf16', shape, data: Uint16Array.from(words, (bits) => bits >>> 16) };
}

function problemOf(
  [queries, keys, qkDim, vDim]: readonly [number, number, number, number],
  changes: Partial<Problem> = {},
): Problem {
  const wave = (i: number): number => Math.sin(1 + i * 0.7);
  return {
    q: bf16([1, queries, qkDim], wave),
    k: bf16([1, keys, qkDim], (i) => wave(i + 0.3)),
    v: bf16([1, keys, vDim], (i) => wave(i * 1.1)),
    scale: 1 / Math.sqrt(qkDim),
    causal: false,
    window: null,
    softcap: null,
    ...changes,
  };
}

it('scales exponents as the compiled host code does: a product of two fp32 numbers', () => {
  // What a launch of the compiled kernel for 192 dimensions was given.
  const problem = problemOf([1, 1, 192, 128]);
  const configuration = fa4Configuration(problem, problemShape(problem));
  expect(exponentScale(problem.scale, configuration)).toBe(0.10411754250526428);
});

describe('the forward', () => {
  inTurn('is attention, within the bounds of a correct kernel', { timeout: 300_000 }, async () => {
    const problems = attentionProblem({
      formats: ['bf16', 'fp16'],
      // The kernel masks by −∞ times the scale, so that the scale must be positive; and m·c is rounded
      // before it is subtracted, which for scores beyond 2^24 is off by more than 1.
      regimes: regimeNames.filter((name) => !['wide-exponents', 'near-overflow'].includes(name)),
      softcap: false,
      scales: ['default', 'odd'],
      // Many heads of small problems are compared with the definition (forward-definition.test.ts).
      batch: { max: 1 },
      kvHeads: { max: 1 },
      queries: { max: 260 },
      keys: { max: 300 },
      qkDim: { max: 80 },
      vDim: { max: 80 },
    });
    await fc.assert(
      fc.asyncProperty(problems, async (problem) => {
        const { out, lse } = await emulate(problem, 'fa4');
        expectAttention(problem, { out, lse });
      }),
      { numRuns: scaled(8) },
    );
  });

  const sizes = [
    [1, 1, 1, 1],
    [1, 129, 16, 24],
    [257, 1, 64, 8],
    [128, 128, 192, 128],
    [3, 511, 256, 256],
    [130, 127, 7, 13],
  ] as const;
  inTurn.each(sampled(sizes, 3))(
    'takes %i queries, %i keys, head dimensions %i and %i',
    async (...sizes) => {
      for (const causal of [false, true]) {
        const problem = problemOf(sizes, { causal });
        const { out, lse } = await emulate(problem, 'fa4');
        assertMatchesAttention(problem, { out, lse });
      }
    },
  );

  it('gives every query head of a group its own result', async () => {
    const problem = problemOf([20, 30, 16, 16]);
    const grouped: Problem = { ...problem, q: bf16([4, 20, 16], (i) => Math.sin(1 + i * 0.7)) };
    const { out } = await emulate(grouped, 'fa4');
    const first = await emulate(problem, 'fa4');
    const whole = out.data as Uint16Array;
    expect([...whole.subarray(0, 20 * 16)]).toEqual([...(first.out.data as Uint16Array)]);
    assertMatchesAttention(grouped, { out });
  });

  it('counts lanes, rescales and matrix products', () => {
    const forward = createFa4Forward(problemOf([128, 256, 64, 64]));
    const { counters, rescales } = forward.runTile(0);
    // A share of (128·12/32 …) columns: 16/4 from fragment 1 on, but for the last fragment.
    expect(counters.polynomialLanes).toBe(128 * 2 * 16);
    expect(counters.polynomialLanes + counters.hardwareLanes).toBe(128 * 256);
    expect(counters.mmas).toBe(2 * (64 / 16 + 128 / 16));
    expect(counters.warpRescales + counters.warpRescalesSkipped).toBe(4);
    expect(counters.rowRescales).toBe(rescales.reduce((a, b) => a + b, 0));
  });

  it.each([
    [8, 0],
    [8.0625, 1],
  ])('keeps a maximum that lags by exactly the threshold (%f: %i rescales)', (score, count) => {
    // scale·log2 e is exactly 1, and the block with score 0 is visited first.
    const problem: Problem = {
      ...problemOf([1, 256, 16, 16], { scale: Math.LN2 }),
      q: bf16([1, 1, 16], (i) => (i === 0 ? 1 : 0)),
      k: bf16([1, 256, 16], (i) => (i === 0 ? score : 0)),
    };
    const { rescales, counters } = createFa4Forward(problem).runTile(0);
    expect(rescales[0]).toBe(count);
    expect(counters.rowRescalesSkipped).toBe(1 - count);
  });

  it.each([133120, 1000, 3000, 40000, 77824])(
    'has the rounding of m·c as the exponent of a single key, for |q| = |k| = %i',
    (size) => {
      // Scores up to 1e12, as in pytorch/pytorch #121558. The exponent should be 0.
      const full = (dim: number) => bf16([1, 1, dim], () => size);
      const problem = { ...problemOf([1, 1, 64, 8]), q: full(64), k: full(64), scale: 0.25 };
      const { out, lse } = createFa4Forward(problem).runTile(0);
      const factor = Math.fround(0.25 * Math.LOG2E);
      const score = decodeToFloat64(problem.q.data, formats.bf16)[0] ** 2 * 64;
      // The product of two fp32 numbers is exact in fp64.
      const exponent = score * factor - Math.fround(score * factor);
      const isNan = (out[0] & 0x7fff) > 0x7f80;
      expect(isNan).toBe(exponent >= 128);
      if (exponent >= 128) expect(lse[0]).toBe(Infinity);
      else if (exponent < -150) expect(lse[0]).toBe(-Infinity);
      else expect(lse[0]).toBeLessThan(Infinity);
    },
  );

  it('gives a query without keys 0 and −∞', async () => {
    const problem = problemOf([130, 3, 8, 8], { causal: true });
    const { out, lse } = await emulate(problem, 'fa4');
    expect((lse.data as Float32Array)[126]).toBe(-Infinity);
    expect([...(out.data as Uint16Array).subarray(0, 127 * 8)].every((bits) => bits === 0)).toBe(
      true,
    );
    expect((lse.data as Float32Array)[127]).toBeGreaterThan(-Infinity);
  });
});

describe('the configuration', () => {
  const shapeProblem = problemOf([300, 300, 128, 128]);

  it('is the tuned one of the problem', () => {
    const { settings } = findKernelModel('fa4').prepare(shapeProblem, new Map());
    const tuned = exp2Pattern({
      headDim: 128,
      causal: false,
      ctas: 2,
      architecture: 'sm_100',
      inputBits: 16,
    });
    expect(settings).toMatchObject({
      'exp2.frequency': tuned.frequency,
      'exp2.startFragment': tuned.startFragment,
      'exp2.degree': 3,
      'rescale.threshold': 8,
      architecture: 'sm_100',
    });
    const sm103 = findKernelModel('fa4').prepare(
      shapeProblem,
      new Map([['architecture', 'sm_103']]),
    );
    expect(sm103.settings['exp2.frequency']).toBe(0);
    const thor = findKernelModel('fa4').prepare(
      shapeProblem,
      new Map([['architecture', 'sm_110']]),
    );
    expect(thor.settings).toEqual({ ...settings, architecture: 'sm_110' });
  });

  it('says what rests on silicon and what on a model', () => {
    const evidence = (architecture: string) =>
      findKernelModel('fa4')
        .prepare(shapeProblem, new Map([['architecture', architecture]]))
        .evidence.join('\n');
    expect(evidence('sm_90')).toMatch(/matrix products: sm_90 silicon/);
    expect(evidence('sm_100')).toMatch(/matrix products: \[model\]/);
    expect(evidence('sm_100')).toMatch(/ex2, rcp, lg2: MUFU table from sm_90 silicon/);
    expect(evidence('sm_103')).toMatch(/matrix products: \[assumed\]/);
    expect(evidence('sm_110')).toMatch(/matrix products: \[assumed\] as on sm_100/);
    expect(evidence('sm_110')).not.toMatch(/compiled kernel/);
  });

  it.each([
    [{ 'exp2.degree': '6' }, /exp2\.degree is 6; give 1 to 5/],
    [{ 'exp2.frequency': 'x' }, /exp2\.frequency is "x"; give a number/],
    [{ 'rescale.threshold': '-1' }, /rescale\.threshold is -1/],
    [{ architecture: 'sm_80' }, /architecture is "sm_80"; give sm_90, sm_100, sm_103/],
    [{ architecture: 'sm_120' }, /another kernel for sm_120 .*is not modelled; give sm_90, sm_100/],
    [{ 'lse.fused': 'yes' }, /lse\.fused is "yes"; give true or false/],
    [{ blockKeys: '100' }, /blockKeys is 100; give a multiple of 32/],
    [{ degree: '3' }, /has no setting "degree"; it has architecture, exp2\.frequency/],
  ])('refuses %j', (settings, message) => {
    const prepare = () =>
      findKernelModel('fa4').prepare(
        shapeProblem,
        new Map(Object.entries(settings as Record<string, string>)),
      );
    expect(prepare).toThrow(RequestError);
    expect(prepare).toThrow(message);
  });

  it.each([
    [
      {
        softcap: 30,
        alibiSlopes: { format: 'fp32', shape: [1], data: Float32Array.of(1) },
      } as const,
      /one score_mod, but the problem has softcap and ALiBi slopes/,
    ],
    [{ q: { ...shapeProblem.q, format: 'fp32' as const } }, /q is fp32; the fa4 model takes/],
    [{ v: { ...shapeProblem.v, format: 'fp16' as const } }, /q is bf16 but v is fp16/],
  ])('refuses a problem that the kernel does not take', (changes, message) => {
    const prepare = () =>
      findKernelModel('fa4').prepare({ ...shapeProblem, ...changes }, new Map());
    expect(prepare).toThrow(message);
  });
});
