import { describe, expect, it } from 'vitest';
import type { FormatName } from '../../../src/formats/index.js';
import type { Problem } from '../../../src/problem/index.js';
import { singleHead } from '../../setup/problems.js';
import { turns } from '../../setup/turns.js';
import { judgedFa4, judgedNaive } from './judged-kernels.js';
import { boundViolations } from './violations.js';

const inTurn = turns(import.meta.url);

/** One query and one dimension: scores are q·k·scale. */
function scalarProblem(
  format: FormatName,
  scale: number,
  q: number,
  k: readonly number[],
  v: readonly number[],
): Problem {
  const rows = { q: [[q]], k: k.map((x) => [x]), v: v.map((x) => [x]) };
  return singleHead(format, rows, { scale });
}

describe('bounds hold in corners that random problems seldom meet', () => {
  inTurn('subnormal weights, which are aligned as if they were normal', () => {
    // Key 0, in the block visited last: a small product whose exponent counts as 2^-14 · 2^15.
    const keys = Array.from({ length: 64 }, (_, key) => key);
    for (let i = 0; i < 40; i++) {
      const problem = scalarProblem(
        'fp16',
        Math.LN2,
        1,
        keys.map((key) => (key === 0 ? -23.375 : key < 62 ? -200 : key < 63 ? -3.3 : 0)),
        keys.map((key) => (key === 0 ? 32768 + 64 * i : key < 62 ? 0 : 2 ** -14 * (1 + i / 40))),
      );
      const architecture = i % 2 === 0 ? 'sm_90' : 'sm_100';
      const found = boundViolations(problem, judgedFa4(problem, { architecture, blockKeys: 32 }));
      expect(found.violations).toEqual([]);
      expect(found.checked).toBe(24);
    }
  });

  it('scores that are subnormal where they are kept', () => {
    // One key: the LSE is its score.
    const problem = scalarProblem('fp16', 64, 2 ** -24, [0.73828125], [1]);
    const found = boundViolations(problem, judgedNaive(problem, 'naive-input'));
    expect(found.violations).toEqual([]);
    expect(found.checked).toBe(22);
  });

  it.each([0, 2 ** -8])('scores that overflow where they are kept, scale %f', (scale) => {
    const problem = scalarProblem('fp16', scale, 16, [2 ** 14, 1], [1, 2]);
    const found = boundViolations(problem, judgedNaive(problem, 'naive-input'));
    expect(found.violations).toEqual([]);
    // Nothing is said of the kernel that overflows; of one that keeps fp32 there is.
    expect(found.checked).toBe(0);
    expect(boundViolations(problem, judgedNaive(problem, 'naive-fp32')).checked).toBeGreaterThan(
      20,
    );
  });

  it('sums that are subnormal when they are rescaled', () => {
    // Values among the smallest numbers of bf16, and a maximum that grows a little in every block.
    const keys = Array.from({ length: 96 }, (_, key) => key);
    const problem = scalarProblem(
      'bf16',
      Math.LN2,
      1,
      keys.map((key) => (key % 32 === 0 ? 1.25 - key / 128 : -60)),
      keys.map((key) => (3 + (key % 5)) * 2 ** -133),
    );
    const found = boundViolations(
      problem,
      judgedFa4(problem, { rescaleThreshold: 0, blockKeys: 32 }),
    );
    expect(found.violations).toEqual([]);
    expect(found.checked).toBeGreaterThan(20);
  });

  it('a row sum far below 1, by which lost bits of sums are multiplied', () => {
    const problem = scalarProblem(
      'bf16',
      1,
      1,
      [0, 1, 0.5],
      [3, -5, 7].map((x) => x * 2 ** -133),
    );
    const found = boundViolations(problem, judgedFa4(problem, { maxOffset: -20 }));
    expect(found.violations).toEqual([]);
    expect(found.checked).toBeGreaterThan(20);
  });

  it.each(['e4m3', 'e5m2'] as const)(
    'weights of %s beyond fp64, whose products with zeros are no numbers',
    (format) => {
      // A maximum that never follows: relative to that of block 0 key 128 has e^(q·k).
      const keys = Array.from({ length: 129 }, (_, key) => key);
      for (const k of [64, 96, 128, 192, 256, 448]) {
        const problem = scalarProblem(
          format,
          0.25,
          64,
          keys.map((key) => (key === 0 ? k : 0)),
          keys.map(() => 0),
        );
        const judged = judgedFa4(problem, {
          architecture: 'sm_103',
          rescaleThreshold: Infinity,
          maxOffset: 8,
          blockKeys: 128,
          exp2: { frequency: 0, reserve: 0, startFragment: 0, degree: 1 },
        });
        expect(boundViolations(problem, judged).violations).toEqual([]);
      }
    },
  );
});
