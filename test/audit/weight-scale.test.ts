import { describe, expect, it } from 'vitest';
import { judgeOutputs, resolvePremises, type PremiseDeclaration } from '../../src/audit/index.js';
import { formats, round, type FormatName } from '../../src/formats/index.js';
import { attachScales, type Problem } from '../../src/problem/index.js';
import { sampled } from '../setup/effort.js';
import { turns } from '../setup/turns.js';
import { filledProblem, sumNormalNumbers, uniformNumbers } from '../setup/problems.js';
import { runOnlineKernel, type OnlineKernel } from './online-kernel.js';

const inTurn = turns(import.meta.url);

const sums = { qkAccumulator: 'fp32', pvAccumulator: 'fp32' } as const;

/** An fp8 problem of long rows with a descale by head, and scores that spread over some nats. */
function longRows(format: FormatName, spread: number): Problem {
  const frame = { heads: 2, queries: 4, keys: 1280, dim: 16, format };
  const normal = sumNormalNumbers(uniformNumbers(170_900));
  const problem = filledProblem(frame, () => 30 * normal(), {
    scale: spread / 30 / 30 / 4,
  });
  const descale = (first: number) => ({
    descale: { format: 'fp32', shape: [2], data: Float32Array.of(first, first * 0.71) } as const,
  });
  return attachScales(problem, { q: descale(1.3), k: descale(0.9), v: descale(0.013) });
}

/** One key at the maximum of every row, all others 7.5 nats lower: they have nearly half the weight. */
function longTail(format: FormatName): Problem {
  const normal = sumNormalNumbers(uniformNumbers(170_901));
  const frame = { queries: 4, keys: 768, dim: 16, format };
  return filledProblem(
    frame,
    {
      q: (i) => 1 - Math.floor(i / 16) / 16,
      k: (i) => (Math.floor(i / 16) === 300 ? 1.875 : 0),
      v: () => 1 + normal() / 4,
    },
    { scale: 7.5 / 1.875 / 16 },
  );
}

/** P times a factor, rounded, and divided by it in the end. */
function scaledWeights(factor: number): Partial<OnlineKernel> {
  return {
    roundWeight: (p, format) =>
      round(formats[format], Math.fround(p * factor), { overflow: 'saturate' }) / factor,
  };
}

const kernels: readonly (readonly [
  string,
  FormatName,
  Partial<OnlineKernel>,
  PremiseDeclaration,
])[] = [
  ['an offset of 8', 'e4m3', { offset: 8 }, { weightScale: 2 ** 8 }],
  ['a factor of 448', 'e4m3', scaledWeights(448), { weightScale: 448 }],
  ['a factor of 240', 'e4m3', scaledWeights(240), {}],
  ['an offset of 7, as any correct kernel', 'e4m3', { offset: 7 }, {}],
  ['an offset of 8, in e5m2', 'e5m2', { offset: 8 }, { weightScale: 2 ** 8 }],
  ['no factor, in e5m2', 'e5m2', {}, {}],
  ['no factor, declared', 'e4m3', {}, { weightScale: 1 }],
  [
    'a row sum of P as it is rounded',
    'e4m3',
    { offset: 8, exp2: (x) => round(formats.e4m3, 2 ** x, { overflow: 'saturate' }) },
    { weightScale: 2 ** 8, rowSum: 'after-rounding' },
  ],
];

describe('P in an 8-bit format', () => {
  inTurn.each(sampled(kernels, 2))(
    'with %s (%s) passes by its premises',
    (_, format, kernel, premises) => {
      for (const problem of [longRows(format, 1), longTail(format)]) {
        const outputs = runOnlineKernel(problem, kernel);
        const { verdict } = judgeOutputs(problem, outputs, { premises: { ...sums, ...premises } });
        expect(verdict.findings).toEqual([]);
      }
    },
  );

  inTurn(
    'without a factor fails where its small weights vanish, by default and as declared',
    () => {
      const problem = longTail('e4m3');
      const scaled = runOnlineKernel(problem, { offset: 8 });
      expect(judgeOutputs(problem, scaled).verdict.findings).toEqual([]);
      const outputs = runOnlineKernel(problem, {});
      for (const premises of sampled([{}, sums, { ...sums, weightScale: 2 ** 8 }], 1))
        expect(judgeOutputs(problem, outputs, { premises }).verdict.diagnosis?.id).toBe(
          'weights-underflow',
        );
    },
  );

  inTurn('with a factor too large, or a maximum that stays behind, saturates, and is named', () => {
    const problem = longTail('e4m3');
    const causes: readonly (readonly [string, Partial<OnlineKernel>])[] = [
      ['weights-saturate', { offset: 10 }],
      [
        'frozen-maximum',
        { offset: 8, maximum: (before, own) => (before === -Infinity ? own : before) },
      ],
    ];
    for (const [id, kernel] of sampled(causes, 1)) {
      const { verdict } = judgeOutputs(problem, runOnlineKernel(problem, kernel));
      expect(verdict.diagnosis?.id).toBe(id);
    }
  });

  it('has a factor by its format, unless one is declared', () => {
    const problem = longRows('e4m3', 1);
    const scaleOf = (premises: PremiseDeclaration, of = problem) =>
      resolvePremises(of, 'bf16', premises).weightScale;
    expect(scaleOf({})).toBe(2 ** 7);
    expect(scaleOf({ weightScale: 448 })).toBe(448);
    expect(scaleOf({ weights: 'bf16' })).toBe(1);
    expect(scaleOf({}, longRows('e5m2', 1))).toBe(1);
    expect(() => scaleOf({ weightScale: 449 })).toThrow('largest number of e4m3 is 448');
  });
});
