import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { exp2Pattern, findKernelModel } from '../../../kernels/index.js';
import {
  assertMatchesAttention,
  attentionProblem,
  regimeNames,
} from '../../../properties/index.js';
import { auditOutputs } from '../../../src/audit/index.js';
import { emulate } from '../../../src/emulate/index.js';
import { formats, round } from '../../../src/formats/index.js';
import type { Problem } from '../../../src/problem/index.js';
import { runFa4, scoredProblem, tensorOf, wavyProblem } from '../variants-problems.js';
import { scaled } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

const fp8 = (['e4m3', 'e5m2'] as const).map((format) => [format] as const);
const settingsOf = (problem: Problem, settings: Readonly<Record<string, string>> = {}) =>
  findKernelModel('fa4').prepare(problem, new Map(Object.entries(settings)));

describe.each(fp8)('the forward on %s', (format) => {
  inTurn('is attention, within the bounds of a correct kernel', { timeout: 60_000 }, async () => {
    const problems = attentionProblem({
      formats: [format],
      // m·c is rounded before it is subtracted, which for scores beyond 2^24 is off by more than 1.
      regimes: regimeNames.filter((name) => !['wide-exponents', 'near-overflow'].includes(name)),
      softcap: false,
      scales: ['default', 'odd'],
      // Many heads of small problems are compared with the definition (forward-definition.test.ts).
      batch: { max: 1 },
      kvHeads: { max: 1 },
      queries: { max: 20 },
      keys: { max: 300 },
      qkDim: { max: 40 },
      vDim: { max: 40 },
    });
    const architecture = fc.constantFrom('sm_90', 'sm_100');
    await fc.assert(
      fc.asyncProperty(problems, architecture, async (problem, architecture) => {
        const settings = new Map([['architecture', architecture]]);
        const { out, lse } = await emulate(problem, 'fa4', { settings });
        expect(out.format).toBe('bf16');
        assertMatchesAttention(problem, { out, lse });
      }),
      { numRuns: scaled(5) },
    );
  });

  it('raises exponents by 8 and always rescales', () => {
    expect(settingsOf(wavyProblem([1, 1, 3, 5], {}, format)).settings).toMatchObject({
      maxOffset: 8,
      'rescale.threshold': 0,
      'out.format': 'bf16',
    });
  });

  it.each([1, 1.25, 1.75, 2.5, 5, 7, 14])(
    'rounds P times 2^8 once to the format and sums it before, for 2^-%d',
    (score) => {
      // Two keys, V = 1 and 0, the second the larger by what the first is below.
      const problem = scoredProblem({
        queries: 1,
        keys: 2,
        format,
        key: (j: number) => (j === 0 ? -score : 0),
        value: (key) => 1 - key,
      });
      const exponent = -round(formats[format], score);
      const p = round(formats[format], 2 ** (exponent + 8));
      const { out } = runFa4(problem, { 'exp2.frequency': '0', 'out.format': 'fp16' });
      const exact = p / (2 ** 8 * (1 + 2 ** exponent));
      expect(Math.abs(out[0] - exact)).toBeLessThanOrEqual(2 ** -11 * exact + 2 ** -25);
    },
  );

  it('takes the descales of Q and K into the scale and that of V into the output', () => {
    const problem = wavyProblem([2, 1, 9, 200], { scale: 0.5 }, format);
    const descaled = runFa4(problem, { 'descale.q': '0.25', 'descale.k': '2', 'descale.v': '4' });
    const plain = runFa4({ ...problem, scale: 0.25 });
    expect(descaled.bits.lse).toEqual(plain.bits.lse);
    plain.out.forEach((x, i) => expect(descaled.out[i]).toBe(4 * x));
  });

  it('passes an audit', () => {
    const problem = wavyProblem([1, 1, 20, 200], {}, format);
    const kernel = settingsOf(problem);
    const { out, lse } = kernel.run(0);
    const audit = auditOutputs(problem, {
      out: { format: 'bf16', shape: [1, 20, 16], data: out as Uint16Array },
      lse: { format: 'fp32', shape: [1, 20], data: lse },
    });
    expect(audit.verdict.pass).toBe(true);
  });
});

describe('the arithmetic of fp8', () => {
  it('keeps 13 fraction bits of a sum on sm_90 and 25 on sm_100', () => {
    // 256 + 2^-6: the unit of the sum is 2^(8 − 13) on sm_90.
    const problem: Problem = {
      q: tensorOf('e4m3', [1, 1, 32], (_h, _r, c) => (c < 2 ? 1 : 0)),
      k: tensorOf('e4m3', [1, 1, 32], (_h, _r, c) => (c === 0 ? 256 : c === 1 ? 2 ** -6 : 0)),
      v: tensorOf('e4m3', [1, 1, 8], () => 1),
      scale: 1,
      causal: false,
      window: null,
      softcap: null,
    };
    expect(runFa4(problem, { architecture: 'sm_90' }).lse[0]).toBeCloseTo(256, 4);
    expect(runFa4(problem, { architecture: 'sm_100' }).lse[0]).toBeCloseTo(256 + 2 ** -6, 4);
  });

  it('is tuned for its format', () => {
    const problem: Problem = {
      ...wavyProblem([1, 1, 1, 1], { causal: true }, 'e4m3'),
      q: tensorOf('e4m3', [1, 1, 128], () => 1),
      k: tensorOf('e4m3', [1, 1, 128], () => 1),
    };
    const tuned = exp2Pattern({
      headDim: 128,
      causal: true,
      ctas: 1,
      architecture: 'sm_100',
      inputBits: 8,
    });
    expect(tuned.frequency).toBe(8);
    expect(settingsOf(problem).settings['exp2.frequency']).toBe(tuned.frequency);
  });

  it('says that no fp8 output of a GPU was compared', () => {
    const evidence = (format: 'e4m3' | 'bf16', architecture: string) =>
      settingsOf(wavyProblem([1, 1, 1, 1], {}, format), { architecture }).evidence.join('\n');
    expect(evidence('e4m3', 'sm_90')).toMatch(/matrix products: sm_90 silicon/);
    expect(evidence('e4m3', 'sm_100')).toMatch(/matrix products: \[model\]/);
    expect(evidence('e4m3', 'sm_90')).toMatch(/no fp8 output of any GPU was compared/);
    expect(evidence('bf16', 'sm_90')).toMatch(/whole outputs equal silicon/);
  });

  it.each([
    ['e4m3', { architecture: 'sm_110' }, /takes fp8 on compute capability 10 alone/],
    ['bf16', { 'descale.q': '2' }, /descale\.q is 2; only fp8 has it: leave it out/],
    ['e4m3', { 'descale.v': '0' }, /descale\.v is 0; give a positive fp32 number/],
    ['e4m3', { 'descale.k': '1e40' }, /descale\.k is 1e\+40; give a positive fp32 number/],
    ['e4m3', { 'out.format': 'e4m3' }, /out\.format is "e4m3"; give bf16, fp16/],
  ] as const)('refuses %s with %j', (format, settings, message) => {
    expect(() => settingsOf(wavyProblem([1, 1, 1, 1], {}, format), settings)).toThrow(message);
  });
});
