import { describe, expect, it } from 'vitest';
import { sampled } from '../../setup/effort.js';
import { anyGradientPremises, auditGradients, measureGradients } from '../../../src/audit/index.js';
import { compareGradient } from '../../../src/audit/gradients/judge-gradient.js';
import { gradientQuantities } from '../../../src/audit/gradients/gradient-quantities.js';
import { ErrorSum } from '../../../src/audit/gradients/structure/error-sum.js';
import { outputRoundings } from '../../../src/audit/gradients/structure/output-roundings.js';
import type { FormatName } from '../../../src/formats/index.js';
import { tensor } from '../../setup/problems.js';
import { decode, encode } from '../damage.js';
import {
  bellShaped,
  gradientCase,
  normalCase,
  roundedGradients,
  type GradientCase,
} from './gradient-case.js';

/** About normal numbers, and dO so many times as large. */
function smallDout(queries: number, keys: number, size: number): GradientCase {
  const { problem } = normalCase({ queries, keys, dim: 16, format: 'fp16' }, 7);
  const number = bellShaped(99);
  return gradientCase(
    problem,
    tensor('fp16', [1, 1, queries, 16], () => size * number()),
  );
}

/** The sentence of an audit of gradients that are exact, but for some changes, and correctly rounded. */
function verdictOf(
  of: GradientCase,
  change: (values: Float64Array) => Float64Array = (values) => values,
) {
  const changed = { ...of.exact, dv: change(of.exact.dv) };
  return auditGradients(of.problem, roundedGradients(of, changed), { diagnose: false }).verdict;
}

/** The share of elements of exact dV that the smallest normal number of fp16 is larger than. */
function subnormalShare({ exact: { dv } }: GradientCase): number {
  return dv.filter((x) => Math.abs(x) < 2 ** -14).length / dv.length;
}

const mean = (numbers: readonly number[]) =>
  numbers.reduce((sum, x) => sum + x, 0) / numbers.length;

/** What sums of columns and slopes may be where roundings follow from the values, beside what they may be where they do not. */
function thresholdRatios(of: GradientCase, format: FormatName): number[] {
  const measured = measureGradients(of.problem, of.dout, {
    premises: anyGradientPremises(of.problem, format),
    given: { out: null, lse: null },
  });
  return gradientQuantities.flatMap((quantity) => {
    const { name } = quantity;
    const values = decode(encode(of.exact[name], format, of.shapes[name]));
    const compared = compareGradient({ quantity, format, values }, measured);
    const { bound } = measured.gradients[name];
    const errors = { ...bound, roundings: outputRoundings(compared, bound) };
    const [, , , columns] = of.shapes[name];
    const ratios = (pattern: (at: number, column: number) => number, places: number) =>
      Array.from({ length: places }, (_, column) => {
        const sum = new ErrorSum(errors);
        for (let row = 0; row * columns < values.length; row++) {
          for (let at = row * columns; at < (row + 1) * columns; at++) {
            const x = pattern(at, column);
            if (x !== 0) sum.add(at, 0, x);
          }
          sum.endRow(null);
        }
        return [1, -1].map((sign) => sum.ofFollowing(7, 0, sign) / sum.ofIndependent(7, 0));
      }).flat();
    return [
      ...ratios((at, column) => (at % columns === column ? 1 : 0), columns),
      ...ratios((at) => compared.exact.values[at], 1),
    ];
  });
}

describe('gradients among the smallest numbers of fp16', () => {
  // From these on sums over keys and slopes were taken for wrong.
  const frames = [
    [16, 4096, 1e-4],
    [16, 4096, 2e-5],
    [16, 1024, 2e-5],
    [16, 1024, 3e-6],
    [128, 192, 2e-7],
    [128, 192, 6e-8],
  ] as const;
  it.each(sampled(frames, 1))(
    'pass where %i queries × %i keys have dO of %f',
    (queries, keys, size) => {
      const of = smallDout(queries, keys, size);
      expect(subnormalShare(of)).toBeGreaterThan(0.9);
      expect(verdictOf(of).findings.map(({ statement }) => statement)).toEqual([]);
    },
  );

  it('fail where one query is left out of dV and half of it is subnormal', () => {
    const of = smallDout(16, 96, 1e-3);
    const share = subnormalShare(of);
    expect(share).toBeGreaterThan(0.3);
    expect(share).toBeLessThan(0.9);
    // dO is zero there for what it adds to dV.
    const { problem, dout } = of;
    const values = decode(dout);
    const shorter = tensor('fp16', dout.shape, (i) => (i < 16 ? 0 : values[i]));
    const { exact } = gradientCase(problem, shorter);
    expect(verdictOf(of).pass).toBe(true);
    const found = verdictOf(of, () => exact.dv).findings.map(({ test }) => test);
    expect(found).toContain('dv-sum');
    expect(found).toContain('dv-scale');
  });
});

describe('where nothing underflows', () => {
  const frames = (['fp16', 'bf16', 'fp32'] as const).flatMap((format) =>
    [
      { queries: 128, keys: 192, dim: 16 },
      { queries: 64, keys: 300, dim: 32, heads: 2, kvHeads: 1 },
      { queries: 16, keys: 512, dim: 8 },
    ].map((frame) => ({ ...frame, format })),
  );

  it.each(sampled(frames, 2))('thresholds are those of independent roundings: %o', (frame) => {
    const of = normalCase(frame, 11);
    const ratios = thresholdRatios(of, frame.format);
    expect(ratios.length).toBeGreaterThan(20);
    if (process.env['TIGHTNESS'] !== undefined)
      console.info(
        '@',
        JSON.stringify(frame),
        mean(ratios).toFixed(4),
        Math.max(...ratios).toFixed(4),
        Math.min(...ratios).toFixed(4),
      );
    // Not one in 10^4 has more of what follows from the problem than chance makes.
    expect(mean(ratios)).toBeLessThan(1.005);
    expect(mean(ratios)).toBeGreaterThan(0.98);
    expect(ratios.filter((ratio) => Math.abs(ratio - 1) > 0.02).length).toBeLessThan(2);
  });
});
