import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { profileError } from '../../../src/audit/error-profile.js';
import { correlation, isWithin, sizesOf } from '../../../src/audit/premises/error-sizes.js';
import { mergeParts } from '../../../src/audit/splits/merge-parts.js';
import { usageBySequence } from '../../../src/audit/outputs/sequence-usage.js';
import { formats, ulp } from '../../../src/formats/index.js';
import { filledProblem, sequencesOf } from '../../setup/problems.js';
import { compared, handMadeReference } from '../hand-made.js';
import { attentionOracle } from '../../../oracles/index.js';

const [queries, vDim] = [6, 3] as const;
const numbers = (length: number, special: readonly number[] = []) =>
  fc.array(fc.oneof(fc.integer({ min: -999, max: 999 }), fc.constantFrom(...special, 0, 0.5)), {
    minLength: length,
    maxLength: length,
  });
const rms = (values: readonly number[]) =>
  values.length === 0 ? 0 : Math.sqrt(values.reduce((sum, x) => sum + x * x, 0) / values.length);
/** The number of that share of them, by nearest rank. */
const quantile = (values: readonly number[], share: number) =>
  [...values].sort((a, b) => a - b)[Math.max(0, Math.ceil(share * values.length) - 1)] ?? 0;

describe('a profile of errors', () => {
  it('is what its members say of every element', () => {
    const special = [NaN, Infinity, -Infinity];
    const size = queries * vDim;
    fc.assert(
      fc.property(numbers(size, special), numbers(size, special), (exact, errors) => {
        const out = exact.map((x, i) => x + errors[i] / 64);
        const reference = handMadeReference({ queries, vDim, out: (i) => exact[i] });
        const profile = profileError(compared(reference, 'out', Float64Array.from(out), 'bf16'));
        const finite = (values: readonly number[]) => values.filter(Number.isFinite);
        const unit = (i: number) => {
          const row = Math.floor(i / vDim) * vDim;
          const typical = rms(finite(exact.slice(row, row + vDim))) || rms(finite(exact));
          const { maxFinite } = formats.bf16;
          return ulp(formats.bf16, Math.min(Math.max(Math.abs(exact[i]), typical), maxFinite));
        };
        const kept = exact.map((_, i) => i).filter((i) => Number.isFinite(out[i] - exact[i]));
        const sizes = kept.map((i) => Math.abs(out[i] - exact[i]));
        const ulps = kept.map((i) => Math.abs(out[i] - exact[i]) / unit(i));
        const relative = kept.map((i) => {
          const error = Math.abs(out[i] - exact[i]);
          return error === 0 ? 0 : error / Math.abs(exact[i]);
        });
        const near = (a: number, b: number) => {
          if (a !== b && !(Math.abs(a - b) <= 1e-12 * Math.abs(b))) expect(a).toBe(b);
        };
        expect(profile.elements).toBe(size);
        expect(profile.nonFinite.output).toBe(size - finite(out).length);
        expect(profile.nonFinite.oracle).toBe(size - finite(exact).length);
        expect(profile.absolute.max).toBe(Math.max(0, ...sizes));
        near(profile.absolute.rms, rms(sizes));
        const signed = kept.reduce((sum, i) => sum + out[i] - exact[i], 0);
        expect(profile.absolute.mean).toBeCloseTo(signed / Math.max(kept.length, 1), 10);
        near(profile.ulps.max, Math.max(0, ...ulps));
        near(profile.ulps.rms, rms(ulps));
        near(profile.relative.max, Math.max(0, ...relative));
        near(profile.relative.rms, rms(relative));
        for (const [name, share] of [
          ['p50', 0.5],
          ['p90', 0.9],
          ['p99', 0.99],
          ['p999', 0.999],
        ] as const) {
          expect(profile.absolute.percentiles[name]).toBe(quantile(sizes, share));
          near(profile.ulps.percentiles[name], quantile(ulps, share));
        }
        const squares = kept.reduce((sum, i) => sum + exact[i] ** 2, 0);
        const cross = kept.reduce((sum, i) => sum + out[i] * exact[i], 0);
        if (squares === 0) expect(profile.slope).toBeNull();
        else expect(profile.slope).toBeCloseTo(cross / squares, 10);
        const worst = kept.find((_, at) => sizes[at] === Math.max(...sizes));
        if (worst === undefined) {
          expect(profile.worst).toBeNull();
          return;
        }
        expect(profile.worst).toMatchObject({
          at: { query: Math.floor(worst / vDim), column: worst % vDim },
          output: out[worst],
          oracle: exact[worst],
        });
        near(profile.worst!.ulps, Math.max(...sizes) / unit(worst));
      }),
    );
  });

  it('has a typical size of a row in a range where squares would be none', () => {
    for (const scale of [2 ** -900, 2 ** 900]) {
      const reference = handMadeReference({ queries: 2, vDim: 2, out: (i) => (i % 2) * scale });
      const out = Float64Array.from([scale, scale, 0, scale]);
      const { ulps } = profileError(compared(reference, 'out', out, 'fp64'));
      // The root mean square of (0, s) is s/√2, whose ulp is half of that of s.
      expect(ulps.max).toBe(2 ** 53);
    }
  });
});

describe('sizes of errors', () => {
  it('are root mean squares, a mean, and a regression on the exact output', () => {
    fc.assert(
      fc.property(numbers(6), numbers(6), numbers(3), (out, exact, lse) => {
        const sizes = sizesOf({
          out: Float64Array.from(out),
          exact: Float64Array.from(exact),
          lse: Float64Array.from(lse),
        });
        const norm = exact.reduce((sum, x) => sum + x * x, 0);
        const cross = out.reduce((sum, x, i) => sum + x * exact[i], 0);
        expect(sizes.out).toBeCloseTo(rms(out), 9);
        expect(sizes.lse).toBeCloseTo(rms(lse), 9);
        expect(sizes.lseMean).toBeCloseTo((lse[0] + lse[1] + lse[2]) / 3, 9);
        expect(sizes.slope).toBeCloseTo(norm === 0 ? 0 : cross / norm, 9);
        if (norm > 0) expect(sizes.slopeError).toBeCloseTo(rms(out) / Math.sqrt(norm), 9);
        else expect(sizes.slopeError).toBe(Infinity);
        const common = Float64Array.from(exact);
        const a = out.map((x, i) => x - exact[i]);
        const b = out.map((x, i) => 2 * x - exact[i] + i);
        const dot = a.reduce((sum, x, i) => sum + x * b[i], 0);
        const sizeOfB = rms(b);
        const double = Float64Array.from(out, (x, i) => 2 * x + i);
        const found = correlation(Float64Array.from(out), double, common, 0.9 * sizeOfB);
        if (rms(a) > 0 && sizeOfB > 0) expect(found).toBeCloseTo(dot / (6 * rms(a) * sizeOfB), 9);
        if (sizeOfB > 0)
          expect(correlation(Float64Array.from(out), double, common, 1.1 * sizeOfB)).toBe(1);
      }),
    );
    const nothing = new Float64Array(0);
    expect(sizesOf({ out: nothing, exact: nothing, lse: nothing })).toEqual({
      out: 0,
      slope: 0,
      slopeError: Infinity,
      lse: 0,
      lseMean: 0,
    });
  });

  it('are within a factor either way', () => {
    expect([1.9, 2, 2.1, 8, 8.1, 0].map((x) => isWithin(x, 4, 2))).toEqual([
      false,
      true,
      true,
      true,
      false,
      false,
    ]);
  });
});

describe('parts that are merged', () => {
  it('come to what their sums come to, within a radius that is proven and not generous', () => {
    const part = fc.record({
      lse: fc.oneof(fc.integer({ min: -90, max: 90 }), fc.constant(-Infinity)),
      out: fc.tuple(fc.integer({ min: -9, max: 9 }), fc.integer({ min: -9, max: 9 })),
    });
    fc.assert(
      fc.property(fc.array(fc.tuple(part, part), { minLength: 1, maxLength: 5 }), (parts) => {
        const merged = mergeParts({
          splits: parts.length,
          rows: 2,
          dim: 2,
          out: Float64Array.from(parts.flatMap((rows) => rows.flatMap(({ out }) => out))),
          lse: Float64Array.from(parts.flatMap((rows) => rows.map(({ lse }) => lse / 8))),
        });
        for (const row of [0, 1] as const) {
          const own = parts.map((rows) => rows[row]).filter(({ lse }) => lse > -Infinity);
          const lses = own.map(({ lse }) => lse / 8);
          const total = lses.reduce((sum, lse) => sum + Math.exp(lse), 0);
          const lse = own.length === 0 ? -Infinity : Math.log(total);
          if (own.length === 0) expect(merged.lse[row]).toBe(-Infinity);
          else expect(merged.lse[row]).toBeCloseTo(lse, 12);
          const far = own.length === 0 ? 0 : Math.max(...lses.map((x) => Math.max(...lses) - x));
          // Errors of the weights, of their sum over all parts, and of the logarithm and what joins it.
          const largest = Math.max(...lses);
          const ofWeights = lses.reduce(
            (sum, x) => sum + Math.exp(x) * ((largest - x) * 2 ** -53 + 2 ** -52),
            0,
          );
          const proven =
            ofWeights / total +
            (parts.length + 1) * 2 ** -53 +
            2 ** -52 * Math.log(parts.length) +
            2 ** -52 * Math.abs(lse);
          if (own.length === 0) expect(merged.lseRadius[row]).toBe(0);
          else {
            expect(merged.lseRadius[row]).toBeGreaterThan(0.999 * proven);
            expect(merged.lseRadius[row]).toBeLessThan(1.001 * proven);
          }
          for (const column of [0, 1] as const) {
            const mean = (of: (x: number) => number) =>
              own.reduce((sum, { out }, i) => sum + Math.exp(lses[i]) * of(out[column]), 0) /
              (total || 1);
            const at = 2 * row + column;
            expect(merged.out[at]).toBeCloseTo(
              mean((x) => x),
              12,
            );
            expect(merged.magnitude[at]).toBeCloseTo(mean(Math.abs), 12);
            const relative = merged.outRadius[at] / (merged.magnitude[at] || 1);
            if (merged.magnitude[at] > 0) {
              expect(relative).toBeGreaterThan(2 ** -53 * 2 * (parts.length + 1));
              expect(relative).toBeLessThan(2 ** -53 * (12 + 4 * parts.length + 2 * far));
            }
          }
        }
      }),
    );
  });
});

describe('the use of bounds by sequence', () => {
  it('is the worst ratio of its finite elements, and how many are outside', () => {
    const sequences = sequencesOf([
      [2, 1],
      [0, 2],
      [1, 3],
    ]);
    const problem = filledProblem({ heads: 2, queries: 3, keys: 6, dim: 2 }, (i) => i / 8, {
      sequences,
    });
    const reference = attentionOracle(problem);
    const exact = reference.quantities.out.values;
    const limits = exact.map((_, i) => (i + 1) / 64);
    // Elements of [2 heads, 3 queries, 2 columns]; the last query of each head is of the last sequence.
    const shares = [0.5, 0, -0.75, 1.5, 0.25, -0.125, NaN, 0, 1, -2, -0.375, 0];
    const values = exact.map((x, i) => x + shares[i] * limits[i]);
    const usage = usageBySequence(problem, reference, values, limits)!;
    expect(usage.map(({ queries: q, keys: k, outside }) => [q, k, outside])).toEqual([
      [2, 1, 2],
      [0, 2, 0],
      [1, 3, 0],
    ]);
    [2, 0, 0.375].forEach((share, i) => expect(usage[i].worstRatio).toBeCloseTo(share, 9));
    expect(
      usageBySequence({ ...problem, sequences: undefined } as never, reference, values, limits),
    ).toBeNull();
  });
});
