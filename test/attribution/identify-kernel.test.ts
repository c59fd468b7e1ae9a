import { describe, expect, it } from 'vitest';
import { attentionOracle } from '../../oracles/index.js';
import { defaultCandidates, identifyKernel, type Candidate } from '../../src/attribution/index.js';
import { renderIdentification } from '../../src/report/text/attribution/index.js';
import { emulate } from '../../src/emulate/index.js';
import type { Tensor } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import { rescaleProblem } from '../kernels/fa4/rescale-regimes.js';
import { configuredCase } from './captured-attribution.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const problem = rescaleProblem('large', 130, 300, 64, 3);
const reference = attentionOracle(problem);

async function outputOf({ model, settings }: Candidate): Promise<Tensor> {
  return (await emulate(problem, model, { settings: new Map(Object.entries(settings)) })).out;
}

describe('an output of a model', () => {
  // No two of the same bits here: exp2.frequency=0 is as sm_103, and three blocks of keys are no more than three parts.
  const last = defaultCandidates.length - 1;
  const several = [0, 1, 2, 3, 11, 15, 21, last - 1, last];
  const candidates = several.map((i) => defaultCandidates[i]);

  inTurn.each(candidates)('$model $settings is recognised', async (candidate) => {
    const output = await outputOf(candidate);
    const found = identifyKernel(problem, output, { reference, candidates, search: [] });
    const { elements, misrounded } = found;
    const [best, second] = found.matches;
    expect(best).toMatchObject({ ...candidate, equal: elements, largestDifference: 0 });
    expect(best.likeness).toBe(1);
    expect(second.likeness).toBeLessThan(1);
    expect(misrounded).toBeGreaterThan(0);
    expect(best.correlation).toBeCloseTo(1, 12);
    expect(best.correlationBeyondRounding).toBeCloseTo(1, 12);
    expect(second.equal).toBeLessThan(elements);
    expect(second.correlationBeyondRounding).toBeLessThan(0.999);
  });

  it('is recognised after a few elements have changed', async () => {
    const output = await outputOf(candidates[3]);
    const data = (output.data as Uint16Array).slice();
    for (let i = 0; i < 50; i++) data[i * 37] ^= 1;
    const { matches, elements } = identifyKernel(
      problem,
      { ...output, data },
      { reference, candidates, search: [] },
    );
    expect(matches[0]).toMatchObject({ ...candidates[3], equal: elements - 50 });
  });
});

describe('an output of a GPU', () => {
  it('of FlashAttention-4 is recognised among settings', async () => {
    const { problem, outputs, settings } = await configuredCase('09');
    const others = [
      { ...settings, 'rescale.threshold': '0' },
      { ...settings, 'exp2.degree': '5' },
      { ...settings, 'exp2.frequency': '0' },
    ];
    const candidates = [...others, settings].map((chosen) => ({ model: 'fa4', settings: chosen }));
    const { matches, elements } = identifyKernel(problem, outputs.fa4.out, {
      candidates,
      search: [],
    });
    expect(matches[0]).toMatchObject({ settings, equal: elements });
    expect(matches[1].equal).toBeLessThan(elements);
  });

  inTurn('of cuDNN is nearest to always rescaling', async () => {
    const { problem, outputs } = await configuredCase('02');
    const candidates = [
      { model: 'naive-fp32', settings: {} },
      { model: 'fa4', settings: {} },
      { model: 'fa4', settings: { 'rescale.threshold': '0', 'exp2.frequency': '0' } },
    ];
    const { matches, elements } = identifyKernel(problem, outputs.torch_cudnn.out, {
      candidates,
      search: [],
    });
    const [likest, second] = [...matches].sort((a, b) => b.likeness - a.likeness);
    expect(likest).toMatchObject(candidates[2]);
    expect(likest.equal).toBeLessThan(elements);
    expect(likest.likeness).toBeGreaterThan(2 * second.likeness);
    expect(likest.correlationBeyondRounding).toBeGreaterThan(0.3);
  });

  it('of fp32 arithmetic is nearest to the fp32 model', async () => {
    const { problem, outputs } = await configuredCase('09');
    const candidates = [...defaultCandidates.slice(0, 2), { model: 'naive-fp32', settings: {} }];
    const { matches, elements } = identifyKernel(problem, outputs.torch_math.out, {
      candidates,
      search: [],
    });
    expect(matches[0].model).toBe('naive-fp32');
    expect(matches[0].equal).toBeGreaterThan(0.99 * elements);
    expect(matches[1].equal).toBeLessThan(0.9 * elements);
    expect(Math.abs(matches[1].correlationBeyondRounding!)).toBeLessThan(0.5);
  });
});

describe('a request', () => {
  const out: Tensor = { format: 'bf16', shape: [1, 130, 64], data: new Uint16Array(130 * 64) };

  it('with a candidate that does not take the problem says why', () => {
    const candidates = [
      { model: 'fa2', settings: {} },
      { model: 'naive-fp32', settings: {} },
    ];
    const softcapped = { ...problem, softcap: 20 };
    const result = identifyKernel(softcapped, out, { candidates, search: [] });
    expect(result.matches).toHaveLength(1);
    expect(result.skipped).toEqual([
      { ...candidates[0], reason: expect.stringContaining('no softcap') },
    ]);
    const text = renderIdentification(result);
    expect(text).toContain('no softcap');
    expect(text).toMatch(/naive-fp32 +\d+ +\d+\.\d\d %/);
  });

  it.each([
    [{ ...out, shape: [1, 64, 130] }, [], /output has shape \[1, 64, 130\] but/],
    [{ ...out, shape: [1, 13, 64] }, [], /the problem makes \[1, 1, 130, 64\]/],
    [out, [{ model: 'fa5', settings: {} }], /no kernel model "fa5"/],
  ])('that is wrong is refused', (output, candidates, message) => {
    const identify = () => identifyKernel(problem, output as Tensor, { candidates, reference });
    expect(identify).toThrow(RequestError);
    expect(identify).toThrow(message);
  });
});
