import { describe, expect, it } from 'vitest';
import { attentionGradients } from '../../../oracles/index.js';
import { naiveGradients } from '../../../kernels/index.js';
import { auditGradients } from '../../../src/audit/index.js';
import {
  decodeTensor,
  encodeFromFloat64,
  formats,
  round,
  type Tensor,
} from '../../../src/formats/index.js';
import { testSeed } from '../../setup/effort.js';
import { normalProblem, seededRandom } from '../../kernels/features/index.js';
import { drawDout } from '../../kernels/gradients/index.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

const problem = normalProblem(seededRandom(testSeed), { batch: 1, queries: 30, keys: 40, dim: 16 });
const dout = drawDout(seededRandom(testSeed + 1), problem);
const textbook = naiveGradients(problem, dout, problem.q.format);
const exact = attentionGradients(problem, dout).dq!.values;
const bf16 = (x: number) => round(formats.bf16, x);

/** The exact dQ in bf16, one element off by some number. */
function offBy(error: number): Tensor {
  const values = exact.map((x, i) => bf16(i === 7 ? bf16(x) + error : x));
  return { ...textbook.dq, data: encodeFromFloat64(formats.bf16, values) };
}

function ruleOf(given = problem, dq = textbook.dq) {
  return auditGradients(given, { dout, dq }, { diagnose: false });
}

describe("FlashAttention's rule for gradients", () => {
  const { lowPrecisionMaxError: error, ...rule } = ruleOf().flashAttention.dq!;

  it('compares with the largest error of textbook gradients', () => {
    const values = decodeTensor(textbook.dq);
    const largest = values.reduce((most, x, i) => Math.max(most, Math.abs(x - bf16(exact[i]))), 0);
    const shaken = exact.reduce((most, x) => {
      const rounded = bf16(x);
      return Math.max(most, Math.abs(bf16(bf16(rounded + 0.3) - 0.3) - rounded));
    }, 0);
    expect(error).toBe(largest);
    expect(rule).toEqual({ pass: true, maxError: largest, allowance: 2 * largest + 2 * shaken });
  });

  it('passes and fails an element where its allowance ends, whatever the verdict', () => {
    const found = (share: number) => ruleOf(problem, offBy(share * rule.allowance));
    expect(found(0.9).flashAttention.dq!.pass).toBe(true);
    expect(found(1.2).flashAttention.dq!.pass).toBe(false);
    expect(found(0.9).verdict.pass).toBe(false);
  });

  inTurn('allows three times, and 3e-4 beside, under a softcap', () => {
    const capped = { ...problem, softcap: 1e4 };
    const { lowPrecisionMaxError, allowance } = ruleOf(capped).flashAttention.dq!;
    const shaken = attentionGradients(capped, dout).dq!.values.reduce((most, x) => {
      const rounded = bf16(x);
      return Math.max(most, Math.abs(bf16(bf16(rounded + 0.3) - 0.3) - rounded));
    }, 0);
    expect(allowance).toBeCloseTo(3 * lowPrecisionMaxError + 2 * shaken + 3e-4, 12);
  });

  it('says why it is not computed', () => {
    const fp32: Tensor = { ...textbook.dq, format: 'fp32', data: Float32Array.from(exact) };
    const { flashAttention, verdict } = ruleOf(problem, fp32);
    expect(flashAttention).toEqual({});
    expect(verdict.notJudged).toContain(
      "FlashAttention's rule for gradients, since dQ is in fp32 and PyTorch gives it in bf16",
    );
  });
});
