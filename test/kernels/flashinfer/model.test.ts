import { basename } from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runKernelModel } from '../../../kernels/index.js';
import { attentionProblem, regimeNames } from '../../../properties/index.js';
import { auditOutputs, judgedArithmetic, modelPremises } from '../../../src/audit/index.js';
import { decodeTensor, encodeFromFloat64, formats } from '../../../src/formats/index.js';
import type { Problem, Tensor } from '../../../src/problem/index.js';
import { RequestError } from '../../../src/request-error.js';
import { casePaths, readCase } from '../../audit/captured-cases.js';
import { scaled } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';
import { outputDigest } from '../output-digest.js';

const inTurn = turns(import.meta.url);
const splits = new Map([['splits', 'auto']]);

/**
 * The first digits of the SHA-256 of outputs and natural LSEs that FlashInfer's compiled kernels gave on the emulated machine
 * (examples/flashinfer, `run --contract`) and on an H200; LSEs in base 2 times ln 2 in fp32.
 */
const compiled: Readonly<Record<string, readonly [string, string]>> = {
  '00-normal-256x256-d64-bf16': ['872ba650800607fd', '67228b6ce738f9aa'],
  '03-sink-256x256-d64-bf16-causal': ['d4c385e3101e559a', '561e95221472b9d3'],
  '05-descending-384x384-d64-bf16': ['ec209cb105101573', '4ccaea7bd5af4369'],
};

const problems = attentionProblem({
  formats: ['bf16', 'fp16'],
  softcap: false,
  causal: false,
  window: false,
  queries: { min: 65, max: 90 },
  keys: { max: 400 },
  kvHeads: { max: 1 },
  groupSize: { max: 2 },
  qkDim: { min: 64, max: 64 },
  vDim: { min: 64, max: 64 },
  emptyRows: false,
  scales: ['default', 'odd'],
  regimes: regimeNames.filter((name) => !['wide-exponents', 'near-overflow'].includes(name)),
});

/** A problem of zeros and values V = 1. */
function onesOf({ queries, keys }: { queries: number; keys: number }, q: Float64Array): Problem {
  const { bf16 } = formats;
  const tensor = (rows: number, values: Float64Array): Tensor => ({
    format: 'bf16',
    shape: [1, rows, 64],
    data: encodeFromFloat64(bf16, values),
  });
  return {
    q: tensor(queries, q),
    k: tensor(
      keys,
      Float64Array.from({ length: keys * 64 }, (_, i) => Math.sin(i)),
    ),
    v: tensor(keys, new Float64Array(keys * 64).fill(1)),
    scale: 0.125,
    causal: false,
    window: null,
    softcap: null,
  } as Problem;
}

describe("the model of FlashInfer's prefill", () => {
  inTurn.each(casePaths.filter((path) => basename(path, '.safetensors') in compiled))(
    '%s: output and LSE of the compiled kernel',
    async (path) => {
      const { problem } = await readCase(path);
      const { out, lse } = runKernelModel('flashinfer', problem, splits);
      expect([outputDigest(out), outputDigest(lse)]).toEqual(
        compiled[basename(path, '.safetensors')],
      );
    },
  );

  inTurn('is attention, by the bounds of any kernel and by its own', () => {
    fc.assert(
      fc.property(problems, (problem) => {
        const outputs = runKernelModel('flashinfer', problem);
        for (const arithmetic of [judgedArithmetic('flashinfer', problem), undefined])
          expect(
            auditOutputs(problem, outputs, {
              ...(arithmetic === undefined ? {} : { arithmetic }),
              premises: modelPremises('flashinfer'),
            }).verdict.findings,
          ).toEqual([]);
      }),
      { numRuns: scaled(3) },
    );
  });

  it('has row sums that are one more column of P·V: values of 1 give 1', () => {
    const [queries, keys] = [70, 333];
    const q = Float64Array.from({ length: queries * 64 }, (_, i) => 2 * Math.cos(3 * i));
    for (const parts of ['1', '2']) {
      const problem = onesOf({ queries, keys }, q);
      const { out } = runKernelModel('flashinfer', problem, new Map([['splits', parts]]));
      expect(new Set(decodeTensor(out))).toEqual(new Set([1]));
    }
  });

  it('refuses what it has no tile, mask or merge for', () => {
    const few = onesOf({ queries: 64, keys: 64 }, new Float64Array(64 * 64));
    expect(() => runKernelModel('flashinfer', few)).toThrow(RequestError);
    expect(() => runKernelModel('flashinfer', few)).toThrow(/below 65 FlashInfer has other tiles/);
    const causal = {
      ...onesOf({ queries: 70, keys: 65 }, new Float64Array(70 * 64)),
      causal: true,
    };
    expect(() => runKernelModel('flashinfer', causal)).toThrow(/as many keys as queries, or more/);
    const some = onesOf({ queries: 70, keys: 65 }, new Float64Array(70 * 64));
    const run = (count: string) => () =>
      runKernelModel('flashinfer', some, new Map([['splits', count]]));
    expect(run('70')).toThrow(/fewer parts than queries/);
    expect(run('0')).toThrow(/a whole number from 1/);
  });
});
