import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { exp2Polynomial } from '../../kernels/index.js';
import {
  addFloat32,
  fusedMultiplyAddFloat32,
  multiplyFloat32,
  subtractFloat32,
} from '../../src/arith/index.js';
import { decode, encode, formats, nextUp } from '../../src/formats/index.js';
import {
  conversions,
  exp2ApproxFtz,
  findTensorCoreArithmetic,
  tensorCoreProduct,
} from '../../src/hardware/index.js';
import { createCandidates } from '../../src/profile/functions.js';
import {
  exponentLimit,
  largestRoundingExcess,
  weightConversions,
  type WeightFormat,
  weightFormats,
} from '../../src/profile/limits/weight-formats.js';
import { largestExponent, largestThreshold } from '../../src/profile/limits/lag-bound.js';
import {
  limitFunctions,
  offsetTrades,
  type ThresholdLimit,
  thresholdLimits,
} from '../../src/profile/limits/threshold-limits.js';
import {
  largestOutputThreshold,
  largestRowSumThreshold,
  largestSafeValue,
} from '../../src/profile/limits/sum-limits.js';

const { fp32 } = formats;
const functions = createCandidates();
const keys = 4096;
const thresholds = [0, 2, 4, 8, 16, Infinity];
const limits = thresholdLimits(weightFormats, { thresholds, keys }, functions);
const limitOf = (format: WeightFormat, offset: number): ThresholdLimit =>
  limits.find((limit) => limit.format === format && limit.offset === offset)!;

/** The scalar models, which the limits were not computed with. */
const scalar: Readonly<Record<string, (x: number) => number>> = {
  'ex2.approx.ftz.f32': (x) => decode(fp32, exp2ApproxFtz(encode(fp32, x))),
  'degree 3': (x) => exp2Polynomial(x, 3),
};

/** P as the tensor cores get it. */
function converted(format: WeightFormat, weight: number): number {
  const { instruction } = weightConversions[format];
  return decode(formats[format], conversions[instruction].evaluate(encode(fp32, weight)));
}

const formatAndFunction = weightFormats.flatMap((format) =>
  limitFunctions.map((name) => [format, name] as const),
);

describe.each(formatAndFunction)('the largest exponent of %s by %s', (format, name) => {
  const exp2 = scalar[name];
  const { maxFinite } = formats[format];
  const limit = exponentLimit(format, name, functions.get(name)!);
  const half = largestRoundingExcess(format);

  it('gives at most the largest finite number, the next one more', () => {
    expect(exp2(limit.largestFinite)).toBeLessThanOrEqual(maxFinite);
    expect(exp2(nextUp(fp32, limit.largestFinite))).toBeGreaterThan(maxFinite);
  });

  it('or rounds to it, and the next one is infinite or clamped', () => {
    const [last, beyond] = [limit.largestRounded, nextUp(fp32, limit.largestRounded)].map(exp2);
    expect(converted(format, last!)).toBe(maxFinite);
    expect(last! - maxFinite).toBeLessThanOrEqual(half);
    if (weightConversions[format].overflow === 'infinite')
      expect(converted(format, beyond!)).toBe(Infinity);
    else {
      expect(converted(format, beyond!)).toBe(maxFinite);
      expect(beyond! - maxFinite).toBeGreaterThan(half);
    }
  });

  it('holds for everything below', () => {
    const below = fc.float({ min: -200, max: limit.largestFinite, noNaN: true });
    fc.assert(
      fc.property(below, (x) => {
        expect(exp2(x)).toBeLessThanOrEqual(maxFinite);
      }),
      { numRuns: 500 },
    );
  });
});

/** A row whose maximum lags, in log2. */
interface Reach {
  readonly threshold: number;
  readonly offset: number;
  readonly scale: number;
  /** m·c, before m is rounded. */
  readonly maximum: number;
  /** The share of the threshold by which it lags; 1: as far as the kernel lets it. */
  readonly lag: number;
  /** How far the key's score lies below the largest. */
  readonly below: number;
}

describe('the bound on exponents under a lag', () => {
  /** An fp32 number with any exponent between. */
  const positive = (low: number, high: number) =>
    fc
      .tuple(fc.integer({ min: low, max: high }), fc.integer({ min: 2 ** 23, max: 2 ** 24 - 1 }))
      .map(([exponent, significand]) => significand * 2 ** (exponent - 23));
  const numbers: fc.Arbitrary<Reach> = fc.record({
    threshold: fc.oneof(fc.constantFrom(2, 4, 8, 16), positive(-3, 6)),
    offset: fc.constantFrom(0, 8, -8, 4),
    scale: positive(-12, 6),
    maximum: fc.double({ min: -1024, max: 1024, noNaN: true }),
    lag: fc.oneof(fc.constant(1), fc.double({ min: 0, max: 1, noNaN: true })),
    below: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 2, noNaN: true })),
  });

  /** The exponent of the key, each operation rounded as the kernel rounds it. */
  function reach({ threshold, offset, scale, maximum, lag, below }: Reach): number {
    const m = Math.fround(maximum / scale);
    const lagOf = (score: number): number => multiplyFloat32(subtractFloat32(m, score), scale);
    let largest = Math.fround(m + (lag * threshold) / scale);
    while (lagOf(largest) < -threshold) largest = -nextUp(fp32, -largest);
    for (let nudges = 0; nudges < 4 && lag === 1; nudges++)
      if (lagOf(nextUp(fp32, largest)) >= -threshold) largest = nextUp(fp32, largest);
    const score = below === 0 ? largest : Math.fround(largest - below / scale);
    const bias = subtractFloat32(offset, multiplyFloat32(m, scale));
    return fusedMultiplyAddFloat32(score, scale, bias);
  }

  it('holds for every sequence of fp32 operations', () => {
    fc.assert(
      fc.property(numbers, (input) => {
        const { threshold, offset } = input;
        // The maximum rounded to fp32 may lie an ulp beyond 1024.
        const bound = largestExponent({ threshold, offset, scoreExponent: 1024.001 });
        expect(reach(input)).toBeLessThanOrEqual(bound);
      }),
      { numRuns: 5000 },
    );
  });

  it('is no looser than 2^-13 where scores reach 1024', () => {
    for (const threshold of [2, 4, 8, 16]) {
      const bound = largestExponent({ threshold, offset: 0, scoreExponent: 1024 });
      expect(bound).toBeGreaterThan(threshold);
      expect(bound - threshold).toBeLessThan(2 ** -13);
    }
  });

  it.each([
    // Just above 512 half an ulp is 2^-15: so much m·c may be off.
    [0, -512.3, 513, 2 ** -16],
    // Where 8 − m·c exceeds 1024 and m·c does not, its sum is off by up to 2^-14 more.
    [8, -1020.3, 1021, 1.1 * 2 ** -14],
  ])('counts every rounding of the bias, offset %i', (offset, maximum, scoreExponent, least) => {
    const threshold = 8;
    let worst = 0;
    for (let i = 0; i < 8000; i++) {
      const scale = Math.fround(0.1803 + i * 1e-6);
      const x = reach({ threshold, offset, scale, maximum, lag: 1, below: 0 });
      worst = Math.max(worst, x - threshold - offset);
    }
    // A bound without one of the roundings would be exceeded.
    expect(worst).toBeGreaterThan(least);
    expect(threshold + offset + worst).toBeLessThanOrEqual(
      largestExponent({ threshold, offset, scoreExponent }),
    );
  });

  it('inverts to a largest threshold', () => {
    const limit = fc.float({ min: -4, max: 127, noNaN: true });
    const offset = fc.constantFrom(0, 8, -8);
    const scoreExponent = fc.constantFrom(0, 1, 1024, 2 ** 20);
    fc.assert(
      fc.property(limit, offset, scoreExponent, (most, o, b) => {
        const conditions = { offset: o, scoreExponent: b };
        const threshold = largestThreshold(most, conditions);
        const at = (t: number): number => largestExponent({ ...conditions, threshold: t });
        if (threshold === null) {
          expect(at(0)).toBeGreaterThan(most);
          return;
        }
        expect(Math.fround(threshold)).toBe(threshold);
        expect(at(threshold)).toBeLessThanOrEqual(most);
        const ulp = 2 ** -22 * Math.max(threshold, Math.abs(most), 2 ** -20);
        expect(at(Math.fround(threshold + ulp))).toBeGreaterThan(most);
      }),
      { numRuns: 2000 },
    );
  });
});

describe('the limits of the threshold', () => {
  it('are below log2 of the largest finite number by the margin of the roundings only', () => {
    for (const { format, offset, weights } of limits) {
      const room = Math.log2(formats[format].maxFinite) - offset;
      expect(weights).toBeLessThan(room);
      // Degree 3 exceeds 2^x by 2^-13 and so by 0.00013 in log2; the bias adds 2·2^-14.
      expect(room - weights!).toBeLessThan(3e-4);
    }
  });

  it('of e4m3 with offset 8 is 0.807, and 0.858 with what rounding takes away', () => {
    const { weights, roundedWeights, largest } = limitOf('e4m3', 8);
    expect(weights).toBeCloseTo(Math.log2(448) - 8, 3);
    expect(roundedWeights).toBeCloseTo(Math.log2(464) - 8, 3);
    expect(largest).toBe(weights);
  });

  it('call 8 safe for 16 bits, 16 for bf16 only, and nothing but 0 for e4m3 with offset 8', () => {
    const safe = (format: WeightFormat, offset: number): number[] =>
      limitOf(format, offset)
        .outcomes.filter(({ isSafe }) => isSafe)
        .map(({ threshold }) => threshold);
    expect(safe('bf16', 0)).toEqual([0, 2, 4, 8, 16]);
    expect(safe('fp16', 0)).toEqual([0, 2, 4, 8]);
    expect(safe('e4m3', 8)).toEqual([0]);
    expect(safe('e4m3', 0)).toEqual([0, 2, 4, 8]);
    expect(safe('e5m2', 8)).toEqual([0, 2, 4]);
  });

  it('say what the models make of the largest weight beyond them', () => {
    for (const { format, offset, overflow, outcomes } of limits)
      for (const { threshold, isSafe, shrinkage, largestWeight } of outcomes) {
        const weight = 2 ** (threshold + offset);
        if (isSafe || weight > fp32.maxFinite) continue;
        expect(largestWeight).toBe(threshold + offset);
        const rounded = converted(format, weight);
        if (overflow === 'infinite') {
          expect(rounded).toBe(Infinity);
          expect(shrinkage).toBeNull();
        } else expect(1 - rounded / weight).toBe(shrinkage);
      }
    const published = limitOf('e4m3', 8).outcomes.find(({ threshold }) => threshold === 4)!;
    expect(published.shrinkage).toBe(0.890625);
  });
});

describe('the limits of sums', () => {
  const conditions = { offset: 0, scoreExponent: 0, format: 'bf16', keys } as const;

  it('of l: so many weights at the limit are finite, at 2^-10 more they are not', () => {
    const threshold = largestRowSumThreshold(conditions)!;
    const sum = (exponent: number): number => {
      let total = 0;
      for (let key = 0; key < keys; key++) total = addFloat32(total, Math.fround(2 ** exponent));
      return total;
    };
    expect(sum(threshold)).toBeLessThan(Infinity);
    expect(sum(threshold + 2 ** -10)).toBe(Infinity);
  });

  it('of O: by the tensor cores', () => {
    const value = 2 ** 16;
    const threshold = largestOutputThreshold(conditions, value)!;
    const arithmetic = findTensorCoreArithmetic({
      ...({ instruction: 'tcgen05.mma', architecture: 'sm_100', a: 'bf16' } as const),
    });
    const product = (weight: number): number => {
      const pattern = (x: number) => new Uint16Array(keys).fill(encode(formats.bf16, x));
      const [bits] = tensorCoreProduct(arithmetic, {
        ...({ m: 1, n: 1, k: keys, aFormat: 'bf16', bFormat: 'bf16' } as const),
        a: pattern(weight),
        bTransposed: pattern(value),
        c: new Uint32Array(1),
      });
      return decode(fp32, bits!);
    };
    // bf16 has 8 significand bits: its largest weight below the limit, and one above.
    const largest = 2 ** Math.floor(threshold) * (2 - 2 ** -6);
    expect(Math.log2(largest)).toBeLessThanOrEqual(threshold);
    expect(product(largest)).toBeLessThan(Infinity);
    expect(product(2 ** Math.ceil(threshold))).toBe(Infinity);
  });

  it('of V are those of the threshold, the other way round', () => {
    for (const threshold of [0, 4, 8, 16]) {
      const value = largestSafeValue(conditions, threshold);
      const found = largestOutputThreshold(conditions, value)!;
      expect(Math.abs(found - threshold)).toBeLessThan(2 ** -16);
    }
  });

  it.each(limitFunctions)('rest on an exp2 that exceeds 2^x by 2^-13 at most: %s', (name) => {
    const exponent = fc.float({ min: -100, max: 127, noNaN: true });
    fc.assert(
      fc.property(exponent, (x) => {
        expect(scalar[name](x)).toBeLessThanOrEqual(2 ** x * (1 + 2 ** -13));
      }),
      { numRuns: 2000 },
    );
  });

  it('fall by one for twice the keys', () => {
    const [few, many] = [1024, 2048].map((n) =>
      largestRowSumThreshold({ ...conditions, keys: n })!,
    );
    expect(few! - many!).toBeCloseTo(1, 4);
  });
});

describe('the trade of a threshold against the low end', () => {
  const trades = weightFormats.flatMap((format) => offsetTrades(limitOf(format, 0), thresholds));

  it('takes the largest offset that holds every weight', () => {
    for (const { format, threshold, offset } of trades) {
      const at = (o: number): number =>
        largestExponent({ threshold, offset: o, scoreExponent: 1024 });
      const { exponent } = limitOf(format, 0);
      expect(at(offset)).toBeLessThanOrEqual(exponent);
      expect(at(offset + 1)).toBeGreaterThan(exponent);
    }
    expect(trades.every(({ threshold }) => threshold < Infinity)).toBe(true);
  });

  it('loses what the conversion makes 0, and no more', () => {
    for (const { format, offset, lostUpTo, subnormalUpTo } of trades) {
      const lost = 2 ** (lostUpTo + offset);
      expect(converted(format, lost)).toBe(0);
      expect(converted(format, nextUp(fp32, lost))).toBeGreaterThan(0);
      const smallest = 2 ** formats[format].minExponent;
      const subnormal = Math.fround(2 ** (subnormalUpTo + offset));
      expect(converted(format, subnormal * (1 - 2 ** -22))).toBeLessThan(smallest);
      expect(converted(format, subnormal * (1 + 2 ** -22))).toBe(smallest);
    }
  });

  it('costs one for one', () => {
    for (const format of weightFormats) {
      const [none, , four] = trades.filter((trade) => trade.format === format);
      expect(four!.lostUpTo - none!.lostUpTo).toBe(4);
      expect(four!.range).toBe(none!.range);
    }
  });
});
