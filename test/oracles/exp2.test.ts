import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { approximationError } from '../../oracles/correct-rounding.js';
import {
  createFloat64Exp2,
  exp2Rounded,
  exp2ToOddByDoubleDouble,
  exp2ToOddByFixedPoint,
} from '../../oracles/exp2.js';
import {
  formats,
  nextDown,
  nextUp,
  smallestSubnormal,
  type NumberFormat,
} from '../../src/formats/index.js';
import { hardCases } from './hard-rounding-cases.js';
import { loadCorrectlyRounded } from './mpfr-correct-rounding.js';
import {
  expectCorrectRounding,
  float32FromBits,
  roundingModes,
  roundingTargets,
  runSeeded,
} from './rounding-targets.js';
import { scaled } from '../setup/effort.js';

const mpfr = await loadCorrectlyRounded();
const { fp32, bf16, fp16, e4m3, e5m2 } = formats;

const check = (x: number): void => expectCorrectRounding('exp2', exp2Rounded, mpfr.exp2, x);

/** 2^x in every mode, in the order nearest-even, toward-zero, down, up. */
const inEveryMode = (x: number, format: NumberFormat): number[] =>
  roundingModes.map((mode) => exp2Rounded(x, format, mode));

describe('exp2Rounded against MPFR', () => {
  it('is MPFR on fp32 inputs of every exponent', () => {
    runSeeded(scaled(3000), (random) => {
      const exponent = Math.floor(random() * 36) - 28;
      check(Math.fround((random() - 0.5) * 2 ** (exponent + 2)));
    });
  });

  it('is MPFR on fp64 inputs', () => {
    runSeeded(scaled(1500), (random) => check((random() - 0.55) * 300));
  });

  it('is MPFR on the fp64 inputs around the logarithms of numbers and midpoints', () => {
    // Their powers lie within a few units of fp64 of where rounding changes, on either side.
    runSeeded(scaled(500), (random) => {
      const midpoint = 1 + Math.floor(random() * 2 ** 24) * 2 ** -24;
      const x = Math.log2(midpoint) + Math.floor(random() * 40) - 20;
      check(x);
      check(x * (1 + 2 ** -52));
      check(x * (1 - 2 ** -52));
    });
  });

  it('is MPFR next to integers and next to 0', () => {
    runSeeded(scaled(300), (random) => {
      const n = Math.floor(random() * 290) - 155;
      for (const distance of [2 ** -52, 2 ** -40, 2 ** -20]) {
        check(n * (1 + distance));
        check(n * (1 - distance));
      }
      const tiny = (random() - 0.5) * 2 ** -Math.floor(random() * 60);
      check(tiny);
    });
    for (const x of [2 ** -149, 2 ** -1074, 2 ** -25, 2 ** -26, 2 ** -27]) {
      check(x);
      check(-x);
    }
  });

  it.each(hardCases.exp2)('is MPFR on the hard case $bits of $format', (hard) => {
    const x = float32FromBits(hard.bits);
    check(x);
    const relative = mpfr.distance('exp2', x, hard.near) / Math.abs(hard.near);
    expect(-Math.log2(relative)).toBeGreaterThan(hard.bitsOfDistance);
  });

  it('is MPFR at every edge of a format', () => {
    for (const format of roundingTargets) {
      const { maxExponent, minExponent, precision } = format;
      const edges = [maxExponent, maxExponent + 1, minExponent, minExponent - precision]
        .concat([minExponent - precision + 1, minExponent - precision - 1, 0])
        .concat([Math.log2(format.maxFinite)]);
      for (const edge of edges)
        for (const x of [
          edge,
          edge * (1 + 2 ** -52),
          edge * (1 - 2 ** -52),
          edge + 0.5,
          edge - 0.5,
        ])
          check(x);
    }
  });
});

describe('the levels of exp2Rounded', () => {
  it('err by no more than they say', () => {
    const approximate = createFloat64Exp2();
    let worst = 0;
    runSeeded(scaled(3000), (random) => {
      const x = (random() - 0.5) * 2 ** (8 - Math.floor(random() * 12));
      const y = approximate(x);
      worst = Math.max(worst, mpfr.distance('exp2', x, y) / y);
    });
    expect(worst).toBeLessThan(3 * 2 ** -53);
    expect(3 * 2 ** -53).toBeLessThan(approximationError);
    // The bound is of the right order: half of it is reached.
    expect(worst).toBeGreaterThan(1.2 * 2 ** -53);
  });

  it('agree where the fp64 level cannot decide', () => {
    for (const { bits } of hardCases.exp2) {
      const x = float32FromBits(bits);
      expect(exp2ToOddByDoubleDouble(x)).toBe(exp2ToOddByFixedPoint(x));
    }
    let undecided = 0;
    runSeeded(scaled(300), (random) => {
      const x = (random() - 0.5) * 2 ** (7 - Math.floor(random() * 60));
      const double = exp2ToOddByDoubleDouble(x);
      if (double === undefined) undecided++;
      else expect(double).toBe(exp2ToOddByFixedPoint(x));
    });
    expect(undecided).toBe(0);
  });

  it('leave to fixed point what double-double cannot tell from an fp64 number', () => {
    // 2^x = 1 + 0.69·2^-110.
    expect(exp2ToOddByDoubleDouble(2 ** -110)).toBe(undefined);
    expect(exp2ToOddByFixedPoint(2 ** -110)).toBe(1 + 2 ** -52);
    expect(exp2ToOddByFixedPoint(-(2 ** -110))).toBe(1 - 2 ** -53);
  });
});

describe('exp2Rounded by name', () => {
  it.each([fp32, bf16, fp16, e5m2])('of the special values in $name', (format) => {
    expect(inEveryMode(NaN, format)).toEqual([NaN, NaN, NaN, NaN]);
    expect(inEveryMode(Infinity, format)).toEqual([Infinity, Infinity, Infinity, Infinity]);
    expect(inEveryMode(-Infinity, format)).toEqual([0, 0, 0, 0]);
    expect(inEveryMode(0, format)).toEqual([1, 1, 1, 1]);
    expect(inEveryMode(-0, format)).toEqual([1, 1, 1, 1]);
  });

  it.each([...roundingTargets, e4m3])('of integers is exact in $name', (format) => {
    for (let n = format.minExponent - format.precision + 1; n <= format.maxExponent; n++)
      expect(inEveryMode(n, format)).toEqual(Array(4).fill(2 ** n));
  });

  it.each(roundingTargets)('overflows and underflows by the mode in $name', (format) => {
    const { maxExponent, maxFinite, minExponent, precision } = format;
    const tiny = smallestSubnormal(format);
    for (const x of [maxExponent + 1, maxExponent + 1.5, 1e6, Number.MAX_VALUE])
      expect(inEveryMode(x, format)).toEqual([Infinity, maxFinite, maxFinite, Infinity]);
    // Half the smallest subnormal is a tie, which goes to the even 0.
    const half = minExponent - precision;
    for (const x of [half, half - 1e-9, half - 1, half - 1.5, -1e6, -Number.MAX_VALUE])
      expect(inEveryMode(x, format)).toEqual([0, 0, 0, tiny]);
    expect(inEveryMode(half + 1e-9, format)).toEqual([tiny, 0, 0, tiny]);
  });

  it.each(roundingTargets)('next to 0 is next to 1 by the mode in $name', (format) => {
    for (const x of [2 ** -40, 2 ** -149, Number.MIN_VALUE]) {
      expect(inEveryMode(x, format)).toEqual([1, 1, 1, nextUp(format, 1)]);
      const below = nextDown(format, 1);
      expect(inEveryMode(-x, format)).toEqual([1, below, below, 1]);
    }
  });

  it('is NaN beyond the range of e4m3, which has no infinity', () => {
    expect(inEveryMode(9, e4m3)).toEqual([NaN, 448, 448, NaN]);
    expect(inEveryMode(Infinity, e4m3)).toEqual([NaN, NaN, NaN, NaN]);
    expect(inEveryMode(8.9, e4m3)).toEqual([NaN, 448, 448, NaN]);
    expect(inEveryMode(8.8, e4m3)).toEqual([448, 416, 416, 448]);
  });

  it('refuses fp64 and unknown modes', () => {
    expect(() => exp2Rounded(0.5, formats.fp64)).toThrow(/cannot round correctly to fp64/);
    expect(() => exp2Rounded(0.5, fp32, 'odd' as 'up')).toThrow(/no rounding mode 'odd'/);
    expect(() => exp2Rounded(2, bf16, 'odd' as 'up')).toThrow(/no rounding mode 'odd'/);
  });
});

describe('laws of 2^x', () => {
  const exponents = fc.double({ min: -160, max: 140, noNaN: true });

  it('is monotone in every mode, and the modes enclose one another', () => {
    fc.assert(
      fc.property(exponents, exponents, fc.constantFrom(...roundingTargets), (a, b, format) => {
        const [low, high] = a < b ? [a, b] : [b, a];
        for (const mode of roundingModes)
          expect(exp2Rounded(low, format, mode)).toBeLessThanOrEqual(
            exp2Rounded(high, format, mode),
          );
        const [nearest, towardZero, down, up] = inEveryMode(a, format);
        expect(towardZero).toBe(down);
        expect(down <= nearest && nearest <= up).toBe(true);
        if (Number.isFinite(up)) expect(up === down || up === nextUp(format, down)).toBe(true);
      }),
    );
  });

  it('moves with the exponent: 2^(x + 1) = 2·2^x where nothing underflows or overflows', () => {
    fc.assert(
      fc.property(fc.integer({ min: -(2 ** 26), max: 2 ** 26 }), (k) => {
        const x = k * 2 ** -20;
        for (const mode of roundingModes)
          expect(exp2Rounded(x + 1, fp32, mode)).toBe(2 * exp2Rounded(x, fp32, mode));
      }),
    );
    expect(exp2Rounded(0.5, fp16)).toBe(1.4140625);
  });
});
