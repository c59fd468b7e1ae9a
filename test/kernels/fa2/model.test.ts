import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fa2Model, fa2Tile, runKernelModel, techniques } from '../../../kernels/index.js';
import { attentionOracle } from '../../../oracles/index.js';
import { attentionProblem, regimeNames } from '../../../properties/index.js';
import { auditOutputs, judgedArithmetic, modelPremises } from '../../../src/audit/index.js';
import { encodeFromFloat64, formats, patternsOf } from '../../../src/formats/index.js';
import { RequestError } from '../../../src/request-error.js';
import { scaled } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

const sizes = {
  formats: ['bf16', 'fp16'],
  softcap: false,
  queries: { max: 40 },
  keys: { max: 300 },
} as const;

const dims = { qkDim: { min: 8, max: 8 }, vDim: { min: 8, max: 8 } };
const ordinary = {
  ...sizes,
  ...dims,
  // Their LSE is +∞, which an audit takes for wrong.
  emptyRows: false,
  scales: ['default', 'odd'],
  regimes: regimeNames.filter((name) => !['wide-exponents', 'near-overflow'].includes(name)),
} as const;

const settings = fc.constantFrom(
  new Map<string, string>(),
  new Map([['build', 'flash-attn']]),
  new Map([['architecture', 'sm_80']]),
  new Map([['architecture', 'sm_120']]),
);

describe('the model of FlashAttention-2', () => {
  inTurn('is attention, within its own bounds', () => {
    fc.assert(
      fc.property(attentionProblem(ordinary), settings, (problem, chosen) => {
        const outputs = runKernelModel('fa2', problem, chosen);
        const arithmetic = judgedArithmetic('fa2', problem, chosen);
        const premises = modelPremises('fa2', chosen);
        const { verdict } = auditOutputs(problem, outputs, { arithmetic, premises });
        expect(verdict.findings).toEqual([]);
      }),
      { numRuns: scaled(5) },
    );
  });

  inTurn('with split keys is attention by the bounds of any kernel', () => {
    fc.assert(
      fc.property(attentionProblem(ordinary), fc.constantFrom('2', '3'), (problem, splits) => {
        const outputs = runKernelModel('fa2', problem, new Map([['splits', splits]]));
        expect(auditOutputs(problem, outputs).verdict.findings).toEqual([]);
      }),
      { numRuns: scaled(3) },
    );
  });

  it('with every technique emulated has the bits of the model', () => {
    const problems = attentionProblem({ ...sizes, ...dims, specialValues: ['nan', 'infinity'] });
    fc.assert(
      fc.property(problems, settings, (problem, chosen) => {
        const attributed = fa2Model.attribute(problem, chosen);
        const run = attributed.prepareRuns([new Set(attributed.techniques)]);
        const model = fa2Model.prepare(problem, chosen);
        const format = formats[attributed.outFormat];
        for (let piece = 0; piece < model.pieces; piece++) {
          const { outputs, lse } = run(piece);
          const expected = model.run(piece);
          expect([...patternsOf(encodeFromFloat64(format, outputs[0]), format)]).toEqual([
            ...expected.out,
          ]);
          expect([...lse[0]]).toEqual([...expected.lse]);
        }
      }),
      { numRuns: scaled(5) },
    );
  });

  it('on GeForce Blackwell has Hopper’s tiles and bits, and smaller tiles of gradients', () => {
    for (const dim of [32, 64, 96, 128, 192, 256])
      for (const causal of [true, false])
        expect(fa2Tile(dim, 'sm_120', causal)).toEqual(fa2Tile(dim, 'sm_90', causal));
    fc.assert(
      fc.property(attentionProblem(ordinary), (problem) => {
        const on = (architecture: string) =>
          runKernelModel('fa2', problem, new Map([['architecture', architecture]]));
        expect(on('sm_120')).toEqual(on('sm_90'));
        const { evidence } = fa2Model.prepare(problem, new Map([['architecture', 'sm_120']]));
        expect(evidence.join('\n')).not.toMatch(/equals silicon|sm_90 silicon, every/);
        expect(evidence[0]).toBe('matrix products: [model] MMA-Sim, arXiv 2511.10909');
      }),
      { numRuns: scaled(3) },
    );
  });

  it('with none is exact attention', () => {
    fc.assert(
      fc.property(attentionProblem(ordinary), settings, (problem, chosen) => {
        const { quantities } = attentionOracle(problem);
        const attributed = fa2Model.attribute(problem, chosen);
        const run = attributed.prepareRuns([new Set()]);
        for (let piece = 0; piece < attributed.pieces; piece++) {
          const { outputs, firstRow } = run(piece);
          outputs[0].forEach((x, i) => {
            const at = firstRow * 8 + i;
            const { values, magnitude } = quantities.out;
            expect(Math.abs(x - values[at])).toBeLessThanOrEqual(1e-12 * magnitude[at]);
          });
        }
      }),
      { numRuns: scaled(4) },
    );
  });

  it('has every technique but a software exp2', () => {
    const problem = fc.sample(attentionProblem({ ...sizes, ...dims }), 1)[0];
    const missing = techniques.filter(
      (name) => !fa2Model.attribute(problem, new Map()).techniques.includes(name),
    );
    expect(missing).toEqual(['exp2-polynomial']);
  });

  it('has the tiles of its launch template', () => {
    const tile = (dim: number, architecture: 'sm_80' | 'sm_89' | 'sm_90', causal: boolean) =>
      Object.values(fa2Tile(dim, architecture, causal)).join(' × ');
    expect([32, 64, 80, 128, 160, 256].map((dim) => tile(dim, 'sm_90', true))).toEqual([
      ...['128 × 128', '128 × 128', '128 × 64', '128 × 64', '128 × 64', '64 × 64'],
    ]);
    expect([false, true].map((causal) => tile(128, 'sm_89', causal))).toEqual([
      '128 × 32',
      '64 × 64',
    ]);
    expect(tile(256, 'sm_80', false)).toBe('128 × 64');
  });

  it('refuses what the kernel does not take', () => {
    const [problem] = fc.sample(attentionProblem({ ...sizes, ...dims }), 1);
    const wide = { ...problem, v: { ...problem.v, shape: [...problem.v.shape] } };
    expect(() => runKernelModel('fa2', { ...wide, softcap: 20 })).toThrow(RequestError);
    for (const [key, value] of [
      ['splits', '0'],
      ['splits', 'some'],
      ['multiprocessors', '0'],
      ['build', 'triton'],
      ['architecture', 'sm_100'],
      ['exp2.degree', '3'],
    ])
      expect(() => runKernelModel('fa2', problem, new Map([[key, value]]))).toThrow(RequestError);
    expect(() => fa2Model.arithmetic(problem, new Map([['splits', '2']]))).toThrow(/splits is 2/);
    expect(() => fa2Model.attribute(problem, new Map([['splits', '2']]))).toThrow(/splits at 1/);
  });
});
