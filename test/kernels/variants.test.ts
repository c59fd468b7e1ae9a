import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createFa4Forward, findKernelModel, kernelVariants } from '../../kernels/index.js';
import { attentionProblem } from '../../properties/index.js';
import { RequestError } from '../../src/request-error.js';
import { scaled } from '../setup/effort.js';
import { turns } from '../setup/turns.js';
import { runFa4, runVariant, scoredProblem, wavyProblem } from './variants-problems.js';

const inTurn = turns(import.meta.url);

const prepare = (settings: Readonly<Record<string, string>>, format: 'bf16' | 'e4m3' = 'bf16') =>
  findKernelModel('fa4').prepare(
    wavyProblem([1, 1, 3, 5], {}, format),
    new Map(Object.entries(settings)),
  );

describe('the list of variants', () => {
  it('has each id once, with a source, a mechanism and when it shows', () => {
    const ids = kernelVariants.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { id, title, source, mechanism, visibleWhen } of kernelVariants) {
      expect(id).toMatch(/^[a-z0-9]+(-[a-z0-9]+)*$/);
      expect(source).toMatch(/^(synthetic|[\w.-]+\/[\w.-]+ #\d+(, #\d+)*|arXiv \d{4}\.\d{5})$/);
      for (const text of [title, mechanism, visibleWhen]) expect(text.length).toBeGreaterThan(5);
    }
  });

  it('is the setting `variant` of the fa4 model', () => {
    const { settings } = findKernelModel('fa4');
    expect(settings.find(({ key }) => key === 'variant')?.description).toContain(
      String(kernelVariants.length),
    );
    expect(prepare({}).settings).toMatchObject({ variant: 'none' });
    const varied = prepare({ variant: 'lse-base-2' });
    expect(varied.settings).toMatchObject({ variant: 'lse-base-2' });
    expect(varied.evidence.at(-1)).toBe('variant lse-base-2: synthetic');
  });

  it('refuses an unknown one and lists them all', () => {
    const unknown = () => prepare({ variant: 'off-by-two' });
    expect(unknown).toThrow(RequestError);
    for (const { id } of kernelVariants) expect(unknown).toThrow(id);
  });

  it.each([
    [
      { variant: 'fp8-lazy-saturation' },
      'bf16',
      /variant fp8-lazy-saturation: q is bf16; give e4m3/,
    ],
    [{ variant: 'fp8-p-underflow' }, 'bf16', /variant fp8-p-underflow: q is bf16/],
    [{ variant: 'empty-split', splits: '1' }, 'bf16', /nothing to combine; give splits 2 or more/],
    [{ variant: 'exp2-coefficient-c3', 'exp2.degree': '2' }, 'bf16', /degree 2 has no c3/],
  ] as const)('refuses %j for %s', (settings, format, message) => {
    expect(() => prepare(settings, format)).toThrow(RequestError);
    expect(() => prepare(settings, format)).toThrow(message);
  });

  it('lets settings override those that a variant brings', () => {
    const settings = (given: Readonly<Record<string, string>>) =>
      prepare({ variant: 'fp8-lazy-saturation', ...given }, 'e4m3').settings;
    expect(settings({})).toMatchObject({ maxOffset: 8, 'rescale.threshold': 4 });
    expect(settings({ 'rescale.threshold': '2' })).toMatchObject({ 'rescale.threshold': 2 });
  });
});

describe('the forward step by step', () => {
  const problems = attentionProblem({
    formats: ['bf16', 'fp16', 'e4m3', 'e5m2'],
    softcap: false,
    specialValues: ['nan', 'infinity'],
    queries: { max: 6 },
    keys: { max: 300 },
    qkDim: { max: 20 },
    vDim: { max: 20 },
  });

  it('has the bits of the kernel when nothing is changed', () => {
    fc.assert(
      fc.property(problems, fc.constantFrom(1, 3), (problem, splits) => {
        const bits = (varied: boolean) => {
          const forward = createFa4Forward(problem, {
            configuration: { splits },
            ...(varied ? { variation: {} } : {}),
          });
          return Array.from({ length: forward.tiles }, (_, tile) => {
            const { out, lse, rescales, counters } = forward.runTile(tile);
            return [[...out], [...new Uint32Array(lse.buffer)], [...rescales], counters];
          });
        };
        expect(bits(true)).toEqual(bits(false));
      }),
      { numRuns: scaled(8) },
    );
  });

  it('has the bits of the kernel where a problem gives no variant anything to do', () => {
    // One block of keys alike, all scores 0, scale 1, all columns by hardware, no mask.
    const problem = scoredProblem({ queries: 2, keys: 128 }, { scale: 1 });
    const settings = { 'exp2.frequency': '0' };
    const { bits } = runFa4(problem, settings);
    const everywhere = [
      'uniform-scale-error',
      'reciprocal-before-last-block',
      'lse-base-2',
      'empty-split',
    ];
    for (const { id } of kernelVariants.filter(({ id }) => !id.startsWith('fp8'))) {
      const same = expect(runVariant(id, problem, settings).bits, id);
      if (everywhere.includes(id)) same.not.toEqual(bits);
      else same.toEqual(bits);
    }
  });

  inTurn('has tiles that do not depend on the order in which they are run', () => {
    const problem = wavyProblem([2, 1, 130, 140], { causal: true });
    for (const variant of ['none', 'alpha-of-other-stage', 'stale-zero-max']) {
      const run = (order: readonly number[]) => {
        const settings = new Map([['variant', variant]]);
        const kernel = findKernelModel('fa4').prepare(problem, settings);
        return new Map(order.map((piece) => [piece, [...kernel.run(piece).out]]));
      };
      expect(run([3, 1, 2, 0]), variant).toEqual(run([0, 1, 2, 3]));
    }
  });
});
