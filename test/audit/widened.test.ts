import { describe, expect, it } from 'vitest';
import { runKernelModel } from '../../kernels/index.js';
import { judgeOutputs, type KernelOutputs } from '../../src/audit/index.js';
import { decodeToFloat64, formats } from '../../src/formats/index.js';
import type { Tensor } from '../../src/problem/index.js';
import { filledProblem, pseudorandom, tensor } from '../setup/problems.js';

/** With large logits few weights count, so that rounding the output is what errs most. */
const frame = { batch: 1, heads: 2, kvHeads: 2, queries: 40, keys: 96, dim: 64 };
const problem = filledProblem(frame, pseudorandom(5), { scale: 3 });

/** The same numbers in fp32, each changed. */
function asFp32({ format, shape, data }: Tensor, change: (x: number) => number = (x) => x): Tensor {
  const values = decodeToFloat64(data, formats[format]).map(change);
  return tensor('fp32', shape, (i) => values[i]);
}

/** What FlashAttention-4 gives in bf16. */
const given: KernelOutputs = runKernelModel('fa4', problem, new Map());
const judge = (out: Tensor, diagnose = false) =>
  judgeOutputs(problem, { ...given, out }, { diagnose }).verdict;

describe('an fp32 output whose values are all bf16', () => {
  it('is told so first where it fails, and told no premise', () => {
    expect(judgeOutputs(problem, given).verdict.pass).toBe(true);
    const { pass, sentence, diagnosis, premise } = judge(asFp32(given.out), true);
    expect(pass).toBe(false);
    expect(sentence).toMatch(
      /^FAIL: the output is widened: a tensor in fp32 .* bf16; dump it in its own format/,
    );
    // What turns a verdict is for a caller to know.
    expect(sentence).not.toContain('--format');
    expect(diagnosis?.id).toBe('output-widened');
    expect(premise).toBeNull();
  });

  it('is not said of one that has other numbers, nor of one number everywhere', () => {
    let i = 0;
    const one = asFp32(given.out, (x) => (i++ === 7 ? x * (1 + 2 ** -12) : x));
    expect(judge(one).sentence).not.toContain('widened');
    expect(judge(asFp32(given.out, () => 0.5)).sentence).not.toContain('widened');
  });

  it('is not said of one whose errors are larger than those of the short format', () => {
    const causal = { ...problem, causal: true };
    const { diagnosis } = judgeOutputs(causal, { ...given, out: asFp32(given.out) }).verdict;
    expect(diagnosis?.id).toBe('causal-mask-missing');
  });

  it('is not said where the exact output has no other numbers either', () => {
    const { v } = problem;
    const even = { ...problem, v: tensor(v.format, v.shape, () => 1) };
    const wrong = asFp32(given.out, () => 0.5);
    const { verdict } = judgeOutputs(even, { ...given, out: wrong }, { diagnose: false });
    expect(verdict.sentence).toMatch(/^FAIL: /);
    expect(verdict.sentence).not.toContain('widened');
  });
});
