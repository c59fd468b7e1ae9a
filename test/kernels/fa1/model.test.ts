import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fa1BlockKeys, fa1Model, runKernelModel } from '../../../kernels/index.js';
import { attentionProblem, regimeNames } from '../../../properties/index.js';
import { auditOutputs, judgedArithmetic, modelPremises } from '../../../src/audit/index.js';
import { encodeFromFloat64, formats, patternsOf } from '../../../src/formats/index.js';
import type { Problem } from '../../../src/problem/index.js';
import { RequestError } from '../../../src/request-error.js';
import { scaled } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

const problems = attentionProblem({
  formats: ['bf16', 'fp16'],
  softcap: false,
  causal: false,
  window: false,
  queries: { max: 40 },
  keys: { max: 700 },
  qkDim: { min: 8, max: 8 },
  vDim: { min: 8, max: 8 },
  emptyRows: false,
  scales: ['default', 'odd'],
  regimes: regimeNames.filter((name) => !['wide-exponents', 'near-overflow'].includes(name)),
});
const settings = fc.constantFrom(new Map<string, string>(), new Map([['architecture', 'sm_90']]));

/** The first so many queries of a problem whose heads are one. */
function square(problem: Problem, length: number): Problem {
  const cut = (tensor: Problem['q']): Problem['q'] => ({
    ...tensor,
    shape: [1, length, 8],
    data: tensor.data.slice(0, 8 * length) as typeof tensor.data,
  });
  return { ...problem, q: cut(problem.k), k: cut(problem.k), v: cut(problem.v), causal: true };
}

describe('the model of FlashAttention-1', () => {
  inTurn('is attention, by the bounds of any kernel and by its own', () => {
    fc.assert(
      fc.property(problems, settings, (problem, chosen) => {
        const outputs = runKernelModel('fa1', problem, chosen);
        const arithmetic = judgedArithmetic('fa1', problem, chosen);
        const premises = modelPremises('fa1', chosen);
        expect(auditOutputs(problem, outputs, { arithmetic, premises }).verdict.findings).toEqual(
          [],
        );
      }),
      { numRuns: scaled(5) },
    );
  });

  inTurn('is attention under a causal mask', () => {
    fc.assert(
      fc.property(problems, (problem) => {
        const keys = problem.k.shape.at(-2)!;
        const masked = square(problem, keys);
        const outputs = runKernelModel('fa1', masked);
        const arithmetic = judgedArithmetic('fa1', masked);
        expect(auditOutputs(masked, outputs, { arithmetic }).verdict.findings).toEqual([]);
      }),
      { numRuns: scaled(3) },
    );
  });

  it('is attributed in two parts, which together are the model', () => {
    fc.assert(
      fc.property(problems, settings, (problem, chosen) => {
        const attributed = fa1Model.attribute(problem, chosen);
        const run = attributed.prepareRuns([new Set(attributed.techniques)]);
        const model = fa1Model.prepare(problem, chosen);
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
      { numRuns: scaled(3) },
    );
  });

  it('has blocks of 256 keys up to 64 dimensions', () => {
    const blocks = [
      [64, 128],
      [64, 129],
      [32, 4096],
      [65, 4096],
    ].map(([qkDim, keys]) => fa1BlockKeys({ qkDim, keys }));
    expect(blocks).toEqual([128, 256, 256, 128]);
  });

  it('refuses what the kernel does not take', () => {
    const [problem] = fc.sample(problems, 1);
    for (const change of [
      { softcap: 20 },
      { window: { left: 3, right: 0 } },
      { scale: -1 },
      { scale: 0 },
    ])
      expect(() => runKernelModel('fa1', { ...problem, ...change })).toThrow(RequestError);
    expect(() => runKernelModel('fa1', problem, new Map([['splits', '2']]))).toThrow(RequestError);
  });
});
