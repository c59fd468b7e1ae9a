import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { exp2Polynomial, exp2Tunings, reduceRange } from '../../kernels/index.js';
import { exp2Rounded } from '../../oracles/index.js';
import { formats, round, smallestNormal, unitRoundoff } from '../../src/formats/index.js';
import { specialFunctions } from '../../src/hardware/index.js';
import {
  profileExp2,
  profileRangeReduction,
  profileSplit,
  profileUnit,
  profileWeightRounding,
  techniqueNamed,
  techniques,
  tuningNames,
  type DomainReport,
  type MeasureReport,
} from '../../src/profile/index.js';
import {
  isReductionExact,
  mergeReductions,
  noReductions,
} from '../../src/profile/techniques/range-reduction-slice.js';
import { polynomialDegrees } from '../../src/profile/functions.js';
import { valueOfOrdinal } from '../../src/profile/float32-order.js';
import { exp2Cells } from '../../src/profile/techniques/input-cells.js';
import { underflowOf, weightRoundings } from '../../src/profile/techniques/p-round.js';
import { inexactByLaw } from '../../src/profile/techniques/range-reduction.js';
import { tuningLanes } from '../../src/profile/trade-offs/exp2-shares.js';
import { RequestError } from '../../src/request-error.js';
import { sampled } from '../setup/effort.js';
import { bitsOf, float32 } from './random-results.js';

const measureOf = (domain: DomainReport, name: string, format: string): MeasureReport =>
  domain.functions
    .find((one) => one.name === name)!
    .measures.find(({ rounding }) => rounding.format === format)!;

describe('exp2', () => {
  it('counts what evaluating one input after another counts', async () => {
    const range = { from: -0.9140625, to: -0.90625 };
    const profile = await profileExp2({ range, degrees: [3] });
    const [domain] = profile.domains;
    const { differing } = measureOf(domain, 'degree 3', 'bf16');
    // Counted here one by one.
    let [inputs, expected] = [0, 0];
    const bf16 = (value: number): number => round(formats.bf16, value);
    const hardware = specialFunctions['ex2.approx.ftz.f32'].evaluate;
    for (let bits = bitsOf(range.from); float32(bits) <= range.to; bits--) {
      const x = float32(bits);
      inputs++;
      if (bf16(exp2Polynomial(x)) !== bf16(float32(hardware(bits)))) expected++;
    }
    expect(domain.inputs).toBe(inputs);
    expect(differing).toBe(expected);
    expect(differing).toBeGreaterThan(0);
  });

  it('shows worst inputs that really are that bad', async () => {
    const { domains } = await profileExp2({ range: { from: 3, to: 3.01 }, degrees: [2, 5] });
    for (const { measures } of domains[0].functions)
      for (const { largest, largestUlp, rounding } of measures)
        for (const { input, rounded, exact, error } of [...largest, ...largestUlp]) {
          const correct = exp2Rounded(input, formats.fp32);
          expect(Math.abs(exact / correct - 1)).toBeLessThan(2 ** -23);
          const size = Math.abs(rounded - exact);
          const units = [1 / exact, 2 ** (formats[rounding.format].precision - 1 - 3)];
          expect(units.some((unit) => Math.abs(size * unit - error) <= 1e-9 * error)).toBe(true);
        }
  });

  it('has the corners of FlashAttention-4', async () => {
    const { corners } = await profileExp2({ range: { from: -127, to: -126 }, degrees: [3] });
    const at = (label: string) => corners.find((corner) => corner.label === label)!;
    const clamped = at('finite x <= -127');
    const kept127 = specialFunctions['ex2.approx.f32'].evaluate(bitsOf(-127));
    expect(clamped.inputs).toBe(1);
    expect(clamped.results.map(({ constantBits }) => Number(constantBits))).toEqual([
      0,
      kept127,
      0,
    ]);
    const below = at('-127 < x < -126');
    expect(below.inputs).toBe(2 ** 17 - 1);
    const [flushed, kept, polynomial] = below.results;
    expect(flushed.zeros).toBe(below.inputs);
    expect(kept.subnormals).toBe(below.inputs);
    expect(polynomial.subnormals).toBe(below.inputs);
    // The bits of the fraction's polynomial, not of 2^x: near 0 instead of near 2^-127.
    expect(polynomial.least).toBeLessThan(2 ** -140);
  });

  it('has cells of tiny inputs that end where the fraction is no longer 1', () => {
    const at = (label: string) => exp2Cells.find((cell) => cell.label === label)!;
    const negative = at('-2^-25 <= x <= -2^-126');
    expect(reduceRange(valueOfOrdinal(negative.first)).fraction).toBe(1);
    expect(reduceRange(valueOfOrdinal(negative.first - 1)).fraction).toBeLessThan(1);
    expect(reduceRange(valueOfOrdinal(negative.last)).fraction).toBe(1);
    expect(reduceRange(valueOfOrdinal(negative.last + 1)).fraction).not.toBe(1);
    const positive = at('2^-126 <= x <= 2^-25');
    for (const degree of polynomialDegrees)
      expect(exp2Polynomial(valueOfOrdinal(positive.last), degree)).toBe(1);
  });

  it('is exact at the integers, and says so', async () => {
    const { integers } = await profileExp2({ range: { from: 1, to: 1 }, degrees: [1, 4] });
    for (const { integers: all, exact } of integers) expect([all, exact]).toEqual([254, 254]);
  });

  it.each([
    [-9, -8.99],
    [15.995, 16.005],
    [8.8, 8.81],
  ])('has means between the extremes and whole histograms from %f to %f', async (from, to) => {
    const { domains } = await profileExp2({ range: { from, to } });
    for (const { measures } of domains[0].functions)
      for (const { averages, largest, histogram, ulpInputs } of measures) {
        for (const { mean, meanMagnitude, rootMeanSquare, ...rest } of averages) {
          if (mean !== null) {
            expect(Math.abs(mean)).toBeLessThanOrEqual(meanMagnitude!);
            expect(meanMagnitude!).toBeLessThanOrEqual(rootMeanSquare!);
            expect(rootMeanSquare!).toBeLessThanOrEqual(largest[0].error);
          }
          expect(rest.differing >= 0 && rest.notCorrectlyRounded <= 1).toBe(true);
        }
        expect(histogram.reduce((sum, { inputs }) => sum + inputs, 0)).toBe(ulpInputs);
        const shares = histogram.reduce((sum, { shareUniform }) => sum + shareUniform, 0);
        if (ulpInputs > 0) expect(shares).toBeCloseTo(1, 12);
      }
  });
});

describe('range-reduction', () => {
  const input = fc
    .oneof(
      fc.double({ min: -127, max: 128, maxExcluded: true, noNaN: true }),
      fc.double({ min: -1, max: 1, noNaN: true }),
      fc.integer({ min: 0, max: 134 * 2 ** 23 - 1 }).map(float32),
    )
    .map(Math.fround)
    .chain((x) => fc.constantFrom(x, Math.max(-127, -x)))
    .filter((x) => x < 128);

  it('obeys its law', () => {
    fc.assert(
      fc.property(input, (x) => {
        const { integerBits, fraction } = reduceRange(x);
        // Exact in fixed point: everything is a multiple of 2^-149.
        const units = (value: number): bigint => {
          const scaled = BigInt(Math.trunc(value * 2 ** 24));
          const rest = value * 2 ** 24 - Math.trunc(value * 2 ** 24);
          return (scaled << 125n) + BigInt(rest * 2 ** 125);
        };
        const isExact = units(integerBits >> 23) + units(fraction) === units(x);
        expect(isReductionExact(bitsOf(x))).toBe(isExact);
      }),
      { numRuns: 3000 },
    );
  });

  // Of the sixteenths of a binade with inexact inputs TEST_SEED draws one, and the whole now and then.
  const sixteenths = Array.from({ length: 16 }, (_, i) => [-0.25 * (1 + i / 16), 16] as const);
  it.each([...sampled(sixteenths, 1), ...sampled([...sixteenths, [-0.25, 1] as const], 1)])(
    'is counted as the law says below %f, in one of %i parts of a binade',
    async (to, parts) => {
      const from = to - 0.25 / parts + 2 ** -25;
      const { total, binades } = await profileRangeReduction({ range: { from, to } });
      expect(total.lawBroken).toBe(0);
      const inputs = 2 ** 23 / parts;
      expect(binades).toHaveLength(1);
      expect(binades[0]).toMatchObject({ sign: '-', exponent: -2, inputs });
      expect(binades[0].inexactByLaw).toBe(parts === 1 ? 2 ** 22 : null);
      expect(binades[0].inexact).toBe(inputs / 2);
      expect(binades[0].largestError).toBe(2 ** -25);
    },
  );

  it('is counted as the law says around 2^-25', async () => {
    const tiny = await profileRangeReduction({
      range: { from: -(2 ** -25) * (1 + 2 ** -20), to: -(2 ** -25) * (1 - 2 ** -20) },
    });
    // From −2^-25 up the fraction is 1, the midpoint included.
    expect(tiny.total).toMatchObject({ inputs: 8 + 16 + 1, fractionIsOne: 16 + 1, inexact: 25 });
  });

  it('knows the subnormal exception', async () => {
    const from = -(2 ** -126) * (1 + 2 ** -20);
    const to = -(2 ** -126) * (1 - 2 ** -5);
    const { total } = await profileRangeReduction({ range: { from, to } });
    const [normal, subnormal] = [9, 2 ** 18];
    expect(total.inputs).toBe(normal + subnormal);
    expect(total.notFloor).toBe(subnormal);
    expect(total.fractionOutside).toBe(subnormal);
    expect(total.inexact).toBe(normal);
  });

  it('has a law that its own predicate counts', () => {
    for (let exponent = -126; exponent < 127; exponent++)
      for (const negative of [false, true]) {
        // Inexact are the significands that are no multiple of 2^below.
        const below = -24 - (exponent - 23);
        const multiples = below <= 0 ? 2 ** 23 : below > 23 ? 0 : 2 ** (23 - below);
        const expected = negative ? 2 ** 23 - multiples : 0;
        expect(inexactByLaw(negative ? '-' : '+', exponent)).toBe(expected);
        const first = bitsOf((negative ? -1 : 1) * 2 ** exponent);
        const isFirstExact = !negative || exponent >= -24;
        expect(isReductionExact(first)).toBe(isFirstExact);
      }
  });

  it('merges the first of equal errors', () => {
    const at = (largestErrorAt: number) => ({ ...noReductions, largestError: 1, largestErrorAt });
    for (const [a, b] of [
      [5, 3],
      [3, 5],
    ])
      expect(mergeReductions(at(a), at(b)).largestErrorAt).toBe(3);
    expect(mergeReductions(noReductions, at(7))).toEqual(at(7));
  });
});

describe('rcp, log2 and rsqrt', () => {
  it('stay within what the PTX ISA promises', async () => {
    const range = { from: 1, to: 1.0625 };
    const [rcp, rsqrt, log2] = await Promise.all(
      (['rcp', 'rsqrt', 'log2'] as const).map((name) => profileUnit(name, { range })),
    );
    const worst = (profile: typeof rcp, measure = 0) =>
      profile.domains[0].functions[0].measures[measure];
    expect(worst(rcp).largestUlp[0].error).toBeLessThan(1);
    expect(worst(rsqrt).largest[0].error).toBeLessThan(2 ** -22.9);
    // Between 1/2 and 2 the absolute error is bounded, the relative one is not.
    expect(worst(log2).error).toBe('absolute');
    expect(worst(log2).largest[0].error).toBeLessThan(2 ** -22);
    expect(worst(log2, 1).largest[0].error).toBeGreaterThan(0.1);
    for (const profile of [rcp, rsqrt, log2]) expect(worst(profile).breaks.count).toBe(0);
  });

  it('are exact at powers of four from 1 on', async () => {
    for (const technique of ['rcp', 'log2', 'rsqrt'] as const)
      for (const x of [1, 4, 16]) {
        const { domains } = await profileUnit(technique, { range: { from: x, to: x } });
        const [{ largestUlp, notCorrectlyRounded }] = domains[0].functions[0].measures;
        expect(largestUlp).toEqual([]);
        expect(notCorrectlyRounded).toBe(0);
      }
  });

  it('flush where their instruction does', async () => {
    const range = { from: 2 ** 126, to: 2 ** 126 * (1 + 2 ** -10) };
    const { corners } = await profileUnit('rcp', { range });
    const [normal, beyond] = corners;
    expect([normal.inputs, normal.results[0].zeros]).toEqual([1, 0]);
    expect(beyond.results[0].zeros).toBe(beyond.inputs);
  });
});

describe('p-round', () => {
  it('errs by half an ulp, and by the unit roundoff, at most', async () => {
    const { domains } = await profileWeightRounding({ range: { from: 0.0078125, to: 0.00787 } });
    for (const { measures } of domains[0].functions)
      for (const { largest, largestUlp, rounding, averages } of measures) {
        expect(largestUlp[0].error).toBeLessThanOrEqual(0.5);
        if (rounding.format === 'bf16') expect(largestUlp[0].error).toBe(0.5);
        const u = unitRoundoff(formats[rounding.format]);
        if (largest.length > 0) expect(largest[0].error).toBeLessThanOrEqual(u / (1 + u));
        expect(averages[0].notCorrectlyRounded).toBe(0);
      }
  });

  it.each(weightRoundings)('loses P in $format with offset $offset where it says', (how) => {
    const format = formats[how.format];
    const { lostUpTo, subnormalUpTo, lostUpToX } = underflowOf(how);
    const next = (x: number): number => float32(bitsOf(x) + 1);
    expect(round(format, lostUpTo)).toBe(0);
    expect(round(format, next(lostUpTo))).toBe(2 ** (format.minExponent - format.precision + 1));
    expect(round(format, subnormalUpTo)).toBeLessThan(smallestNormal(format));
    expect(round(format, next(subnormalUpTo))).toBe(smallestNormal(format));
    // Half of the smallest subnormal, a tie, goes to even.
    expect(lostUpToX).toBe(format.minExponent - format.precision - how.offset);
  });

  it('counts what is flushed to zero and what becomes subnormal', async () => {
    const profiled = async (from: number, to: number) => {
      const { domains } = await profileWeightRounding({ range: { from, to } });
      return measureOf(domains[0], 'P', 'e4m3');
    };
    // A tie with zero, which is lost, in the middle; above it numbers are half as dense.
    const lost = await profiled(2 ** -10 * (1 - 2 ** -5), 2 ** -10 * (1 + 2 ** -4));
    expect(lost.zeros).toBe(2 ** 19 + 1);
    expect(lost.subnormals).toBe(2 ** 19);
    const [, uniform] = lost.averages;
    expect(uniform.zeros).toBeCloseTo(1 / 3, 5);
    // The end of a binade rounds up to a normal number.
    const kept = await profiled(2 ** -6 * (1 - 2 ** -3), 2 ** -6);
    const normals = 2 ** 20 + 1;
    expect(kept).toMatchObject({ zeros: 0, subnormals: 2 ** 21 + 1 - normals });
  });

  it('shows e4m3 alone with the offset', async () => {
    const { domains } = await profileWeightRounding({ range: { from: 200, to: 200.001 } });
    expect(domains).toHaveLength(1);
    expect(domains[0].functions[0].measures.map(({ rounding }) => rounding.format)).toEqual([
      'e4m3',
    ]);
  });
});

describe('split', () => {
  it('has every tuning entry by a name of its own', () => {
    expect(new Set(tuningNames).size).toBe(exp2Tunings.length);
    for (const name of tuningNames) expect(tuningLanes(name).map((t) => t.name)).toEqual([name]);
    expect(() => tuningLanes('d64')).toThrow(/no tuning entry "d64"; known are d128-/);
  });

  it('pictures the share that it states', () => {
    for (const { fragments, polynomialShare, mixedNeighbours, pattern } of tuningLanes()) {
      const row = fragments.join('');
      expect(row).toMatch(/^(hh|pp){64}$/);
      expect(row.split('p').length - 1).toBe(128 * polynomialShare);
      expect(fragments[3]).not.toContain('p');
      expect(row.match(/hp|ph/g)?.length ?? 0).toBe(mixedNeighbours);
      expect(polynomialShare === 0).toBe(pattern.frequency === 0);
    }
  });

  it('measures the step from the hardware to the polynomial', async () => {
    const range = { from: -0.9, to: -0.899 };
    const { domains, steps, crossings } = await profileSplit({ range });
    const hardware = specialFunctions['ex2.approx.ftz.f32'].evaluate;
    const [fp32, bf16] = domains[0].functions[0].measures;
    let [largest, hardwareFirst, polynomialFirst, differing] = [0, 0, 0, 0];
    for (let bits = bitsOf(Math.fround(-0.9)); float32(bits) <= range.to; bits--) {
      const [one, other] = [exp2Polynomial(float32(bits)), float32(hardware(bits))];
      largest = Math.max(largest, Math.abs(one / other - 1));
      if (round(formats.bf16, one) !== round(formats.bf16, other)) differing++;
      if (float32(bits - 1) > range.to) break;
      if (other > exp2Polynomial(float32(bits - 1))) hardwareFirst++;
      if (one > float32(hardware(bits - 1))) polynomialFirst++;
    }
    expect(fp32.largest[0].error).toBeCloseTo(largest, 12);
    expect(bf16.differing).toBe(differing);
    expect(steps[0].most).toBeCloseTo(largest, 12);
    expect(2 ** steps[0].reach!).toBeCloseTo(1 + largest, 12);
    expect(crossings[0]).toMatchObject({
      format: 'fp32',
      hardwareFirst: { count: hardwareFirst },
      polynomialFirst: { count: polynomialFirst },
    });
    expect(polynomialFirst).toBeGreaterThan(0);
  });
});

describe('the techniques', () => {
  it('are known by name', async () => {
    for (const { name } of techniques) expect(techniqueNamed(name).name).toBe(name);
    expect(() => techniqueNamed('tanh')).toThrow(RequestError);
    expect(() => techniqueNamed('tanh')).toThrow(/no profile of "tanh"; known are exp2, range-/);
  });

  it('refuse a range without inputs', async () => {
    for (const { run } of techniques.filter(({ options }) => options.includes('range')))
      await expect(run({ range: { from: 1e30, to: 1e30 } }).then(() => 'done')).rejects.toThrow(
        /give --from and --to between/,
      );
  });
});
