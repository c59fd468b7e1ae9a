import { expect, it } from 'vitest';
import { runKernelModel, type PremiseDeclaration } from '../../../kernels/index.js';
import { attentionOracle } from '../../../oracles/index.js';
import { scoreProblem } from '../../../properties/index.js';
import {
  judgedArithmetic,
  judgeOutputs,
  modelPremises,
  premisePresets,
  quantisedInputs,
} from '../../../src/audit/index.js';
import { decodeTensor, encodeFromFloat64, formats } from '../../../src/formats/index.js';
import type { Problem } from '../../../src/problem/index.js';
import { testSeed } from '../../setup/effort.js';

const audits = Number(process.env['QUANTISED_AUDITS'] ?? 10);

const others: readonly PremiseDeclaration[] = [
  premisePresets['sageattention2-fp16'].premises,
  premisePresets['sageattention2-fp8'].premises,
  premisePresets['sageattention2-int4'].premises,
  { qk: 'int8', qBlock: 1, kBlock: 1, qkScale: 'scores' },
  { qk: 'int8', qkRounding: 'half-even', qkDivision: 'nearest', smoothing: 'keys' },
  { qk: 'nvfp4', qkScale: 'scores' },
  { values: 'nvfp4' },
];

/** A small problem: scores of some size, keys with a mean. */
function drawn(seed: number): Problem {
  const format = seed % 2 === 0 ? 'fp16' : 'bf16';
  const keys = 64 * (1 + (seed % 3));
  const problem = scoreProblem('normal-1', {
    queries: 4 + (seed % 13),
    keys,
    dim: 64,
    format,
    seed,
  });
  const shift = ((seed * 7) % 11) / 2;
  const data = encodeFromFloat64(
    formats[format],
    decodeTensor(problem.k).map((x, at) => x + shift * Math.sin((at % 64) + seed)),
  );
  return { ...problem, k: { ...problem.k, data } };
}

/** The exact output, rounded. */
function exactly(problem: Problem, format: 'fp16' | 'bf16') {
  const { shape, quantities } = attentionOracle(problem);
  const { batch, heads, queries, vDim } = shape;
  return {
    out: {
      format,
      shape: [batch, heads, queries, vDim],
      data: encodeFromFloat64(formats[format], quantities.out.values),
    },
    lse: {
      format: 'fp32' as const,
      shape: [batch, heads, queries],
      data: Float32Array.from(quantities.lse.values),
    },
  };
}

it(`raises no false alarm in ${audits} problems`, { timeout: 3_600_000 }, () => {
  for (let i = 0; i < audits; i++) {
    const seed = (testSeed % 100_000) + i;
    const problem = drawn(seed);
    const format = problem.q.format as 'fp16' | 'bf16';
    const turn = i % (others.length + 3);
    const isModel = turn >= others.length;
    const premises = isModel ? modelPremises('sageattention') : others[turn];
    const outputs = isModel
      ? runKernelModel('sageattention', problem)
      : exactly(quantisedInputs(problem, premises), format);
    const arithmetic =
      turn === others.length ? judgedArithmetic('sageattention', problem) : undefined;
    const { verdict } = judgeOutputs(problem, outputs, {
      premises,
      diagnose: false,
      ...(arithmetic && { arithmetic }),
    });
    expect(verdict.pass, `seed ${seed}, ${JSON.stringify(premises)}: ${verdict.sentence}`).toBe(
      true,
    );
  }
});
