import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  fa3Configuration,
  fa3Mask,
  fa3Model,
  fa3Tile,
  runKernelModel,
  techniques,
  type Fa3Mask,
} from '../../../kernels/index.js';
import { attentionOracle } from '../../../oracles/index.js';
import { attentionProblem, regimeNames } from '../../../properties/index.js';
import { auditOutputs, judgedArithmetic, modelPremises } from '../../../src/audit/index.js';
import { encodeFromFloat64, formats, patternsOf } from '../../../src/formats/index.js';
import { problemShape } from '../../../src/problem/index.js';
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
  scales: ['default', 'odd'],
  regimes: regimeNames.filter((name) => !['wide-exponents', 'near-overflow'].includes(name)),
} as const;

const settings = fc.constant(new Map<string, string>());

describe('the model of FlashAttention-3', () => {
  inTurn('is attention, within its own bounds', () => {
    fc.assert(
      fc.property(attentionProblem(ordinary), settings, (problem, chosen) => {
        const outputs = runKernelModel('fa3', problem, chosen);
        const arithmetic = judgedArithmetic('fa3', problem, chosen);
        const premises = modelPremises('fa3', chosen);
        const { verdict } = auditOutputs(problem, outputs, { arithmetic, premises });
        expect(verdict.findings).toEqual([]);
      }),
      { numRuns: scaled(5) },
    );
  });

  inTurn('with split keys is attention by the bounds of any kernel', () => {
    fc.assert(
      fc.property(attentionProblem(ordinary), fc.constantFrom('2', '3'), (problem, splits) => {
        const outputs = runKernelModel('fa3', problem, new Map([['splits', splits]]));
        expect(auditOutputs(problem, outputs).verdict.findings).toEqual([]);
      }),
      { numRuns: scaled(3) },
    );
  });

  it('with every technique emulated has the bits of the model', () => {
    const problems = attentionProblem({ ...sizes, ...dims, specialValues: ['nan', 'infinity'] });
    fc.assert(
      fc.property(problems, settings, (problem, chosen) => {
        const attributed = fa3Model.attribute(problem, chosen);
        const run = attributed.prepareRuns([new Set(attributed.techniques)]);
        const model = fa3Model.prepare(problem, chosen);
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

  it('with none is exact attention', () => {
    fc.assert(
      fc.property(attentionProblem(ordinary), settings, (problem, chosen) => {
        const { quantities } = attentionOracle(problem);
        const attributed = fa3Model.attribute(problem, chosen);
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
      (name) => !fa3Model.attribute(problem, new Map()).techniques.includes(name),
    );
    expect(missing).toEqual(['exp2-polynomial']);
  });

  it('has the tiles of hopper/tile_size.h', () => {
    const tile = (qkDim: number, vDim: number, mask: Fa3Mask['kind']) =>
      Object.values(fa3Tile({ qkDim, vDim }, mask)).join(' × ');
    const square = (mask: Fa3Mask['kind']) =>
      [64, 96, 128, 192, 256].map((dim) => tile(dim, dim, mask));
    expect(square('none')).toEqual([
      '192 × 192',
      '192 × 144',
      '128 × 176',
      '128 × 112',
      '128 × 80',
    ]);
    expect(square('causal')).toEqual([
      ...['192 × 128', '192 × 144', '128 × 128', '128 × 112', '128 × 80'],
    ]);
    expect(square('local')).toEqual([
      '192 × 128',
      '192 × 128',
      '128 × 128',
      '128 × 96',
      '128 × 64',
    ]);
    expect(tile(192, 128, 'none')).toBe('128 × 128');
  });

  it('knows which windows are causal masks, and which hide nothing', () => {
    const kind = (causal: boolean, left: number, right: number, queries = 10) =>
      fa3Mask({ causal, window: { left, right } }, { queries, keys: 20 }).kind;
    expect([kind(false, -1, -1), kind(false, 19, 9), kind(true, -1, -1, 1)]).toEqual(
      Array(3).fill('none'),
    );
    expect([kind(true, -1, -1), kind(false, -1, 0), kind(true, 19, 5)]).toEqual(
      Array(3).fill('causal'),
    );
    expect([kind(false, 18, -1), kind(true, 3, -1), kind(false, -1, 1)]).toEqual(
      Array(3).fill('local'),
    );
  });

  it('splits keys as hopper/heuristics.h', () => {
    const [problem] = fc.sample(attentionProblem({ ...sizes, ...dims }), 1);
    const splits = (queries: number, keys: number, multiprocessors = 132) => {
      const shape = { ...problemShape(problem), batch: 1, heads: 2, kvHeads: 2, groupSize: 1 };
      const plain = { ...problem, causal: false, window: null };
      const sized = { ...shape, queries, keys, qkDim: 64, vDim: 64 };
      return fa3Configuration(plain, sized, { splits: 'auto', multiprocessors }).splits;
    };
    // Four blocks of 192 keys are not split, five are; a GPU that is full is not.
    expect(splits(100, 768)).toBe(1);
    expect(splits(100, 769)).toBe(5);
    expect(splits(100, 1500)).toBe(7);
    expect(splits(192 * 60, 1500)).toBe(1);
    // Two tiles on 7 multiprocessors: 3 splits fill 6 of them, which is enough.
    expect(splits(192, 1500, 7)).toBe(3);
  });

  it('refuses what the kernel does not take', () => {
    const [problem] = fc.sample(attentionProblem({ ...sizes, ...dims }), 1);
    const wide = { ...problem, v: { ...problem.v, shape: [...problem.v.shape] } };
    expect(() => runKernelModel('fa3', { ...wide, softcap: 20 })).toThrow(RequestError);
    for (const [key, value] of [
      ['splits', '0'],
      ['splits', 'some'],
      ['multiprocessors', '0'],
      ['architecture', 'sm_90'],
      ['exp2.degree', '3'],
    ])
      expect(() => runKernelModel('fa3', problem, new Map([[key, value]]))).toThrow(RequestError);
    expect(() => fa3Model.arithmetic(problem, new Map([['splits', '2']]))).toThrow(/splits is 2/);
    expect(() => fa3Model.attribute(problem, new Map([['splits', '2']]))).toThrow(/splits at 1/);
  });
});
