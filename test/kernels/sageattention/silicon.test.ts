import { describe, expect, it } from 'vitest';
import { runKernelModel } from '../../../kernels/index.js';
import { halfArithmetic } from '../../../kernels/sageattention/forward.js';
import { halfNumbers, halfSums } from '../../../kernels/sageattention/half-sums.js';
import { scoreProblem } from '../../../properties/index.js';
import { auditOutputs, judgedArithmetic, modelPremises } from '../../../src/audit/index.js';
import {
  decodeToFloat64,
  encodeFromFloat64,
  formats,
  patternsOf,
} from '../../../src/formats/index.js';
import { findTensorCoreArithmetic, tensorCoreProduct } from '../../../src/hardware/index.js';
import { openTensorFile } from '../../../src/io/index.js';
import { readProblem } from '../../../src/io/tensors/index.js';
import { drawNumbers } from './draw-numbers.js';

const path = 'fixtures/quantised/sageattention-64x256-d64-int8.safetensors';

async function captured() {
  const file = await openTensorFile(path);
  try {
    return { problem: await readProblem(file), out: await file.read('out') };
  } finally {
    await file.close();
  }
}

describe("SageAttention 1's forward", () => {
  it("has an H100's bits", async () => {
    const { problem, out } = await captured();
    expect([problem.q.integers, problem.k.integers, problem.v.integers]).toEqual([
      'int8',
      'int8',
      undefined,
    ]);
    const model = runKernelModel('sageattention', problem);
    expect(patternsOf(model.out.data, formats.fp16)).toEqual(patternsOf(out.data, formats.fp16));
  });

  it('passes as what it is, with an expected error near the measured one, and fails with 1 % on one head', async () => {
    const { problem, out } = await captured();
    const options = {
      arithmetic: judgedArithmetic('sageattention', problem),
      premises: modelPremises('sageattention'),
    };
    const audit = auditOutputs(problem, { out, lse: null }, options);
    expect(audit.verdict.findings).toEqual([]);
    const { measured, expected } = audit.outputs.out.spread;
    expect(expected / measured).toBeGreaterThan(1);
    expect(expected / measured).toBeLessThan(2);
    const values = decodeToFloat64(out.data, formats.fp16);
    const off = values.map((x, at) => (at < 64 * 64 ? 1.01 * x : x));
    const wrong = { ...out, data: encodeFromFloat64(formats.fp16, off) };
    const { verdict } = auditOutputs(problem, { out: wrong, lse: null }, options);
    expect(verdict.pass).toBe(false);
    expect(verdict.diagnosis!.id).toBe('output-scale');
    expect(verdict.diagnosis!.place!.heads!.ranges).toEqual([{ first: 0, last: 0 }]);
  });

  it('refuses keys that the kernel would count as scores of 0, or counts them', () => {
    const sizes = { queries: 8, dim: 64, format: 'fp16', seed: 1 } as const;
    const problem = scoreProblem('normal-1', { ...sizes, keys: 65 });
    expect(() => runKernelModel('sageattention', problem)).toThrow(
      'counts keys that fill the last 64',
    );
    const counted = runKernelModel('sageattention', problem, new Map([['padding', 'counted']]));
    const { verdict } = auditOutputs(problem, counted, {
      premises: modelPremises('sageattention'),
    });
    expect(verdict.pass).toBe(false);
  });

  it('adds products in fp16 as the tensor core does', () => {
    const arithmetic = findTensorCoreArithmetic({
      instruction: 'wgmma',
      architecture: 'sm_90',
      a: 'fp16',
      accumulator: 'fp16',
    });
    expect(arithmetic).toMatchObject(halfArithmetic);
    const [m, n, k] = [4, 8, 64];
    const a = drawNumbers(m * k, 3);
    const b = drawNumbers(k * n, 4);
    const turned = Float64Array.from(
      { length: n * k },
      (_, at) => b[(at % k) * n + Math.floor(at / k)],
    );
    const patterns = (values: Float64Array) =>
      patternsOf(encodeFromFloat64(formats.fp16, values), formats.fp16);
    const wanted = tensorCoreProduct(arithmetic, {
      m,
      n,
      k,
      a: patterns(a),
      aFormat: 'fp16',
      bTransposed: patterns(turned),
      bFormat: 'fp16',
      c: new Uint32Array(m * n),
      instructionLength: 16,
    });
    const sumOf = halfSums(halfArithmetic, k);
    const [weights, values] = [halfNumbers(a), halfNumbers(b)];
    const got = Float64Array.from({ length: m * n }, (_, at) =>
      sumOf(weights, Math.floor(at / n) * k, values, n, at % n),
    );
    expect([...patterns(got)]).toEqual([...wanted]);
  });
});
