import { describe, expect, it } from 'vitest';
import { judgeOutputs, type PremiseDeclaration } from '../../src/audit/index.js';
import { decodeTensor, encodeFromFloat64, formats, type Tensor } from '../../src/formats/index.js';
import { attachScales, type Problem } from '../../src/problem/index.js';
import { filledProblem, sumNormalNumbers, uniformNumbers } from '../setup/problems.js';
import { turns } from '../setup/turns.js';
import { runOnlineKernel } from './online-kernel.js';

const inTurn = turns(import.meta.url);

const normal = sumNormalNumbers(uniformNumbers(170_904));
const frame = { heads: 2, queries: 8, keys: 100, dim: 32, format: 'e4m3' } as const;

function descaled(factor: number): Problem {
  const descale = { format: 'fp32', shape: [1], data: Float32Array.of(factor) } as const;
  const given = { q: { descale }, k: { descale }, v: { descale } };
  return attachScales(
    filledProblem(frame, () => 30 * normal()),
    given,
  );
}

/** What a kernel gives that multiplies inputs by their factors into bf16, and works in it from then on. */
function dequantizing(problem: Problem) {
  const rounded = (tensor: Tensor): Tensor => ({
    format: 'bf16',
    shape: tensor.shape,
    data: encodeFromFloat64(formats.bf16, decodeTensor(tensor)),
  });
  const { q, k, v } = problem;
  return runOnlineKernel({ ...problem, q: rounded(q), k: rounded(k), v: rounded(v) }, {});
}

describe('inputs that are multiplied by their factors and rounded', () => {
  const sums = { qkAccumulator: 'fp32', pvAccumulator: 'fp32', weights: 'bf16' } as const;
  const passes = (problem: Problem, premises: PremiseDeclaration) =>
    judgeOutputs(problem, dequantizing(problem), { premises }).verdict.pass;

  inTurn('pass once that is declared, and not before', () => {
    const problem = descaled(0.0517);
    expect(passes(problem, { ...sums, dequantized: 'bf16' })).toBe(true);
    expect(passes(problem, sums)).toBe(false);
  });

  it('need no declaration where no bit is lost', () => {
    expect(passes(descaled(2 ** -4), sums)).toBe(true);
  });
});
