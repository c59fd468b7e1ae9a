import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { kernelModels, findKernelModel, yardstickAttention } from '../../kernels/index.js';
import { attentionOracle } from '../../oracles/index.js';
import { attentionProblem, regimeNames } from '../../properties/index.js';
import { emulate } from '../../src/emulate/index.js';
import { decodeToFloat64, encodeFromFloat64, formats, round } from '../../src/formats/index.js';
import { problemShape } from '../../src/problem/index.js';
import { scaled } from '../setup/effort.js';
import { expectAttention } from '../setup/expect-attention.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

describe('the naive kernel in fp32', () => {
  inTurn('is attention, within the bounds of a correct kernel', async () => {
    await fc.assert(
      fc.asyncProperty(
        attentionProblem({
          formats: ['fp32', 'bf16', 'fp16'],
          queries: { max: 40 },
          keys: { max: 200 },
          // Scores overflow in fp32.
          regimes: regimeNames.filter((name) => name !== 'wide-exponents'),
        }),
        async (problem) => {
          const { out, lse } = await emulate(problem, 'naive-fp32');
          expectAttention(problem, { out, lse });
        },
      ),
      { numRuns: scaled(10) },
    );
  });
});

describe('the naive kernel in the format of its inputs', () => {
  it('rounds scores to it before the softmax, which the one in fp32 does not', async () => {
    // The scores are 257 and 256; in bf16 both are 256.
    const tensor = (shape: readonly number[], values: readonly number[]) => ({
      format: 'bf16' as const,
      shape,
      data: encodeFromFloat64(formats.bf16, Float64Array.from(values)),
    });
    const problem = {
      q: tensor([1, 1, 2], [1, 1]),
      k: tensor([1, 2, 2], [256, 1, 256, 0]),
      v: tensor([1, 2, 1], [1, 0]),
      scale: 1,
      causal: false,
      window: null,
      softcap: null,
    };
    const outOf = async (model: string): Promise<number> => {
      const { out } = await emulate(problem, model);
      return decodeToFloat64(out.data, formats.bf16)[0];
    };
    expect(await outOf('naive-input')).toBe(0.5);
    expect(await outOf('naive-fp32')).toBe(round(formats.bf16, Math.E / (1 + Math.E)));
  });

  it('is close to the textbook kernel, which rounds in the same places', async () => {
    const problems = attentionProblem({
      formats: ['bf16', 'fp16'],
      regimes: ['normal'],
      scales: ['default'],
      softcap: false,
      emptyRows: false,
      queries: { max: 40 },
    });
    await fc.assert(
      fc.asyncProperty(problems, async (problem) => {
        const { out } = await emulate(problem, 'naive-input');
        const values = decodeToFloat64(out.data, formats[out.format]);
        const textbook = yardstickAttention(problem, problemShape(problem));
        const {
          quantities: {
            out: { magnitude },
          },
        } = attentionOracle(problem);
        // Where a sum is near a tie, a score of up to 2^4 is an ulp of 2^-8 relative off; weights and
        // outputs likewise. What that does grows with Σ w|v|, however much of it cancels.
        values.forEach((value, i) =>
          expect(Math.abs(value - textbook[i])).toBeLessThanOrEqual(0.25 * magnitude[i]),
        );
      }),
      { numRuns: scaled(6) },
    );
  });
});

describe('the list of models', () => {
  it('has each once, and refuses others with their names', () => {
    const names = kernelModels.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    for (const name of names) expect(findKernelModel(name).name).toBe(name);
    expect(() => findKernelModel('fa5')).toThrow(
      `no kernel model "fa5"; did you mean fa4; there are ${names.join(', ')}`,
    );
  });
});
