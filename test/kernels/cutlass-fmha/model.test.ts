import { basename } from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runKernelModel } from '../../../kernels/index.js';
import { attentionProblem, regimeNames } from '../../../properties/index.js';
import { auditOutputs, judgedArithmetic, modelPremises } from '../../../src/audit/index.js';
import { RequestError } from '../../../src/request-error.js';
import { casePaths, readCase } from '../../audit/captured-cases.js';
import { scaled } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';
import { outputDigest } from '../output-digest.js';

const inTurn = turns(import.meta.url);

/** Of outputs and LSEs that CUTLASS's compiled kernels gave on the emulated machine (examples/cutlass-fmha). */
const compiled: Readonly<Record<string, readonly [string, string]>> = {
  '01-normal-384x384-d128-bf16-causal': ['107aca8bf077813d', 'df2f7a5ffabcdac3'],
  '02-large-384x384-d128-bf16': ['a196668162ccc026', 'd6b72db8ab75f63e'],
};

const problems = attentionProblem({
  formats: ['bf16', 'fp16'],
  softcap: false,
  causal: false,
  window: false,
  queries: { max: 40 },
  keys: { max: 300 },
  qkDim: { min: 64, max: 64 },
  vDim: { min: 64, max: 64 },
  emptyRows: false,
  scales: ['default', 'odd'],
  regimes: regimeNames.filter((name) => !['wide-exponents', 'near-overflow'].includes(name)),
});

describe("the model of CUTLASS's FMHA", () => {
  inTurn.each(casePaths.filter((path) => basename(path, '.safetensors') in compiled))(
    '%s: output and LSE of the compiled kernel',
    async (path) => {
      const { problem } = await readCase(path);
      const { out, lse } = runKernelModel('cutlass-fmha', problem);
      expect([outputDigest(out), outputDigest(lse)]).toEqual(
        compiled[basename(path, '.safetensors')],
      );
    },
  );

  inTurn('is attention, by the bounds of any kernel and by its own', () => {
    fc.assert(
      fc.property(problems, (problem) => {
        const outputs = runKernelModel('cutlass-fmha', problem);
        const arithmetic = judgedArithmetic('cutlass-fmha', problem);
        const premises = modelPremises('cutlass-fmha');
        for (const options of [{}, { arithmetic, premises }])
          expect(auditOutputs(problem, outputs, options).verdict.findings).toEqual([]);
      }),
      { numRuns: scaled(3) },
    );
  });

  it('refuses what it is not', async () => {
    const { problem } = await readCase(casePaths[0]);
    const run = (changed: Partial<typeof problem>) => () =>
      runKernelModel('cutlass-fmha', { ...problem, ...changed });
    expect(run({ softcap: 20 })).toThrow(RequestError);
    expect(run({ scale: 0 })).toThrow(/CUTLASS takes 0 for/);
    expect(() =>
      runKernelModel('cutlass-fmha', problem, new Map([['architecture', 'sm_90']])),
    ).toThrow(/sm_100/);
  });
});
