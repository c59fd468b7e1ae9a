import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { combineSplits } from '../../../kernels/fa4/split-combine.js';
import { splitBlocks } from '../../../kernels/online-softmax/split-tile.js';
import type { SplitRow } from '../../../kernels/online-softmax/split-tile.js';
import { createFa4Forward, findKernelModel } from '../../../kernels/index.js';
import { attentionProblem, regimeNames } from '../../../properties/index.js';
import { emulate } from '../../../src/emulate/index.js';
import { scoredProblem } from '../variants-problems.js';
import { scaled } from '../../setup/effort.js';
import { expectAttention } from '../../setup/expect-attention.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

describe('the blocks of splits', () => {
  it('are all blocks, as many to each split as to the others but for the last', () => {
    fc.assert(
      fc.property(fc.nat(40), fc.integer({ min: 1, max: 12 }), (count, splits) => {
        const blocks = Array.from({ length: count }, (_, i) => count - 1 - i);
        const parts = splitBlocks(blocks, splits);
        expect(parts).toHaveLength(splits);
        // Each split visits its own from the last to the first; the first keys are those of split 0.
        expect(parts.toReversed().flat()).toEqual(blocks);
        const perSplit = Math.ceil(count / splits);
        parts.forEach((part, s) => {
          expect(part.length).toBe(Math.min(Math.max(count - s * perSplit, 0), perSplit));
        });
      }),
    );
  });
});

describe('the combine', () => {
  const finite = fc.float({ min: -50, max: 50, noNaN: true });
  const row: fc.Arbitrary<SplitRow> = fc.record({
    out: fc.array(finite, { minLength: 3, maxLength: 3 }).map((x) => Float32Array.from(x)),
    lse: finite,
  });
  const empty: SplitRow = { out: null, lse: -Infinity };

  it('is the mean of the outputs weighted by exp(LSE), and the log of their sum', () => {
    fc.assert(
      fc.property(fc.array(row, { minLength: 1, maxLength: 40 }), (rows) => {
        const { out, lse } = combineSplits(rows, 3);
        const largest = Math.max(...rows.map((split) => split.lse));
        const weights = rows.map((split) => Math.exp(split.lse - largest));
        const sum = weights.reduce((a, b) => a + b);
        expect(Math.abs(lse - (largest + Math.log(sum)))).toBeLessThan(2e-5);
        for (let c = 0; c < 3; c++) {
          const exact = rows.reduce((x, { out }, s) => x + (weights[s] * out![c]) / sum, 0);
          const size = rows.reduce(
            (x, { out }, s) => x + (weights[s] * Math.abs(out![c])) / sum,
            0,
          );
          expect(Math.abs(out[c] - exact)).toBeLessThanOrEqual(2e-5 * size + 1e-30);
        }
      }),
    );
  });

  it('leaves a single split as it is, whatever empty ones stand beside it', () => {
    fc.assert(
      fc.property(row, fc.nat(5), fc.nat(5), (split, before, after) => {
        const empties = (count: number) => Array.from({ length: count }, () => empty);
        const combined = combineSplits([...empties(before), split, ...empties(after)], 3);
        expect([...combined.out]).toEqual([...split.out!].map((x) => x + 0));
        expect(combined.lse).toBe(split.lse + 0);
      }),
    );
  });

  it('gives 0 and −∞ where every split is empty', () => {
    const { out, lse } = combineSplits([empty, empty], 3);
    expect([...out]).toEqual([0, 0, 0]);
    expect(lse).toBe(-Infinity);
  });

  it('does not read what has weight 0', () => {
    const nan = { out: Float32Array.of(NaN, NaN, NaN), lse: -Infinity };
    const one = { out: Float32Array.of(1, 2, 3), lse: 0 };
    expect([...combineSplits([nan, one], 3).out]).toEqual([1, 2, 3]);
    const poisoned = combineSplits([nan, one], 3, { readsSplit: () => true });
    expect([...poisoned.out].every(Number.isNaN)).toBe(true);
  });
});

describe('the forward in splits', () => {
  inTurn('is attention, within the bounds of a correct kernel', async () => {
    const problems = attentionProblem({
      formats: ['bf16', 'fp16'],
      // As for the forward itself: m·c is rounded before it is subtracted.
      regimes: regimeNames.filter((name) => !['wide-exponents', 'near-overflow'].includes(name)),
      softcap: false,
      scales: ['default', 'odd'],
      // Many heads of small problems are compared with the definition (forward-definition.test.ts).
      batch: { max: 1 },
      kvHeads: { max: 1 },
      queries: { max: 20 },
      keys: { max: 700 },
      qkDim: { max: 20 },
      vDim: { max: 20 },
    });
    await fc.assert(
      fc.asyncProperty(problems, fc.integer({ min: 2, max: 9 }), async (problem, splits) => {
        const settings = new Map([['splits', String(splits)]]);
        const { out, lse } = await emulate(problem, 'fa4', { settings });
        expectAttention(problem, { out, lse });
      }),
      { numRuns: scaled(15) },
    );
  });

  it('counts what its splits count: a rescale for each block but the first of a split', () => {
    const problem = scoredProblem({
      queries: 3,
      keys: 512,
      key: (j) => 16 * (3 - Math.floor(j / 128)),
    });
    const counted = (splits: number) => {
      const { rescales, counters } = createFa4Forward(problem, {
        configuration: { splits },
      }).runTile(0);
      return { rescales: [...rescales], rows: counters.rowRescales, mmas: counters.mmas };
    };
    const { mmas } = counted(1);
    expect(counted(1)).toEqual({ rescales: [3, 3, 3], rows: 9, mmas });
    expect(counted(2)).toEqual({ rescales: [2, 2, 2], rows: 6, mmas });
    expect(counted(4)).toEqual({ rescales: [0, 0, 0], rows: 0, mmas });
  });

  it('says that the combine was compared with no GPU, and refuses other numbers of splits', () => {
    const tensor = (rows: number) => ({
      format: 'bf16' as const,
      shape: [1, rows, 8],
      data: new Uint16Array(rows * 8),
    });
    const problem = {
      q: tensor(1),
      k: tensor(2),
      v: tensor(2),
      scale: 1,
      causal: false,
      window: null,
      softcap: null,
    };
    const prepare = (splits: string) =>
      findKernelModel('fa4').prepare(problem, new Map([['splits', splits]]));
    expect(prepare('2').evidence.join()).toMatch(
      /combine of the splits: the bits of the compiled kernel/,
    );
    expect(prepare('1').evidence.join()).not.toMatch(/combine/);
    for (const splits of ['0', '257', '1.5'])
      expect(() => prepare(splits)).toThrow(/splits is .*; give a whole number from 1 to 256/);
  });
});
