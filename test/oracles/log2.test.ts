import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { approximationError } from '../../oracles/correct-rounding.js';
import {
  createFloat64Log2,
  doubleDoubleLog2,
  doubleDoubleLog2Error,
  log2OfDoubleDouble,
  log2Rounded,
  log2ToOddByDoubleDouble,
  log2ToOddByFixedPoint,
} from '../../oracles/log2.js';
import { addDoubleDouble, productError, subtractDoubleDouble } from '../../src/arith/index.js';
import {
  formats,
  nextDown,
  nextUp,
  round,
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
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const mpfr = await loadCorrectlyRounded();
const { fp32, bf16, fp16, e4m3 } = formats;

const check = (x: number): void => expectCorrectRounding('log2', log2Rounded, mpfr.log2, x);

/** log2 x in every mode, in the order nearest-even, toward-zero, down, up. */
const inEveryMode = (x: number, format: NumberFormat): number[] =>
  roundingModes.map((mode) => log2Rounded(x, format, mode));

/** A random number in [1, 2). */
const significand = (random: () => number): number => 1 + random();

describe('log2OfDoubleDouble', () => {
  it('is the sum of the logarithms of two factors', () => {
    runSeeded(scaled(1000), (random) => {
      const number = () => significand(random) * 2 ** Math.floor(200 * random() - 100);
      const [x, y] = [number(), number()];
      const product = { high: x * y, low: productError(x, y, x * y) };
      const sum = addDoubleDouble(doubleDoubleLog2(x), doubleDoubleLog2(y));
      const distance = Math.abs(subtractDoubleDouble(log2OfDoubleDouble(product), sum).high);
      expect(distance).toBeLessThanOrEqual(3 * doubleDoubleLog2Error(200));
    });
  });
});

describe('log2Rounded against MPFR', () => {
  it('is MPFR on every fp32 exponent, subnormals included', () => {
    runSeeded(scaled(2500), (random) => check(float32FromBits(Math.floor(random() * 0x7f800000))));
  });

  it('is MPFR on fp64 inputs of every exponent, subnormals included', () => {
    runSeeded(scaled(1500), (random) =>
      check(significand(random) * 2 ** (Math.floor(random() * 2097) - 1074)),
    );
  });

  it('is MPFR on the fp64 inputs around the powers of numbers and midpoints', () => {
    // Their logarithms lie within a few units of fp64 of where rounding changes, on either side.
    runSeeded(scaled(400), (random) => {
      const y = significand(random) * 2 ** Math.floor(random() * 8);
      const x = 2 ** round({ ...fp32, precision: 25 }, random() < 0.5 ? y : -y);
      check(x);
      check(x * (1 + 2 ** -52));
      check(x * (1 - 2 ** -52));
    });
  });

  it('is MPFR next to 1 and to the other powers of two', () => {
    runSeeded(scaled(200), (random) => {
      const power = 2 ** (random() < 0.3 ? 0 : Math.floor(random() * 300) - 150);
      for (const distance of [2 ** -52, 2 ** -40, 2 ** -24, 2 ** -9 * random()]) {
        check(power * (1 + distance));
        check(power * (1 - distance));
      }
    });
    for (const exponent of [1023, -1021, -1022]) {
      check(2 ** exponent * (1 + 2 ** -52));
      check(2 ** exponent * (1 - 2 ** -52));
    }
  });

  it('is MPFR on both sides of every seam of its tables', () => {
    for (let i = 0; i <= 128; i++)
      for (const exponent of [-1, 0, 1, 40]) {
        const seam = (1 + i / 128) * 2 ** exponent;
        check(seam);
        check(seam * (1 + 2 ** -52));
        check(seam * (1 - 2 ** -52));
      }
  });

  it.each(hardCases.log2)('is MPFR on the hard case $bits of $format', (hard) => {
    const x = float32FromBits(hard.bits);
    check(x);
    const relative = mpfr.distance('log2', x, hard.near) / Math.abs(hard.near);
    expect(-Math.log2(relative)).toBeGreaterThan(hard.bitsOfDistance);
  });
});

describe('the levels of log2Rounded', () => {
  it('err by no more than they say', () => {
    const approximate = createFloat64Log2();
    let worst = 0;
    let worstDoubleDouble = 0;
    runSeeded(scaled(2500), (random) => {
      const exponent = random() < 0.5 ? -Math.round(random()) : Math.floor(random() * 2046) - 1022;
      const x = significand(random) * 2 ** exponent;
      const y = approximate(x);
      worst = Math.max(worst, mpfr.distance('log2', x, y) / Math.abs(y));
      const { high, low } = doubleDoubleLog2(x);
      const distance = mpfr.distance('log2', x, high, low);
      worstDoubleDouble = Math.max(worstDoubleDouble, distance / doubleDoubleLog2Error(high));
    });
    expect(worst).toBeLessThan(5 * 2 ** -53);
    expect(5 * 2 ** -53).toBeLessThan(approximationError);
    expect(worst).toBeGreaterThan(1.2 * 2 ** -53);
    expect(worstDoubleDouble).toBeLessThan(1);
  });

  it('agree where the fp64 level cannot decide', () => {
    for (const { bits } of hardCases.log2) {
      const x = float32FromBits(bits);
      expect(log2ToOddByDoubleDouble(x)).toBe(log2ToOddByFixedPoint(x));
    }
    let undecided = 0;
    runSeeded(scaled(200), (random) => {
      // Subnormals of at least 20 bits: fewer can be powers of two, whose logarithms are exact.
      const x = (1 + random() / 2 + 2 ** -20) * 2 ** (Math.floor(random() * 2076) - 1053);
      const double = log2ToOddByDoubleDouble(x);
      if (double === undefined) undecided++;
      else expect(double).toBe(log2ToOddByFixedPoint(x));
    });
    expect(undecided).toBe(0);
  });

  it('leave to fixed point what double-double cannot tell from an fp64 number', () => {
    // log2(1 + 2^-52) is 2^-52 log2 e, of which an absolute error of 2^-98 leaves 46 bits.
    const x = 1 + 2 ** -52;
    expect(log2ToOddByDoubleDouble(x)).toBe(undefined);
    const odd = log2ToOddByFixedPoint(x);
    for (const mode of roundingModes)
      expect(round(fp32, odd, { rounding: mode })).toBe(mpfr.log2(x, fp32, mode));
  });
});

describe('log2Rounded by name', () => {
  it.each(roundingTargets)('of the special values in $name', (format) => {
    expect(inEveryMode(NaN, format)).toEqual([NaN, NaN, NaN, NaN]);
    expect(inEveryMode(Infinity, format)).toEqual(Array(4).fill(Infinity));
    for (const zero of [0, -0]) expect(inEveryMode(zero, format)).toEqual(Array(4).fill(-Infinity));
    expect(inEveryMode(1, format)).toEqual([0, 0, 0, 0]);
    for (const negative of [-Number.MIN_VALUE, -1, -Number.MAX_VALUE, -Infinity])
      expect(inEveryMode(negative, format)).toEqual([NaN, NaN, NaN, NaN]);
  });

  inTurn.each([...roundingTargets, e4m3])(
    'of a power of two is its exponent in $name',
    (format) => {
      for (let n = -1074; n <= 1023; n++)
        for (const mode of roundingModes)
          expect(
            Object.is(log2Rounded(2 ** n, format, mode), round(format, n, { rounding: mode })),
          ).toBe(true);
    },
  );

  it('of numbers next to 1 underflows by the mode in fp16', () => {
    const tiny = smallestSubnormal(fp16);
    expect(inEveryMode(1 + 2 ** -40, fp16)).toEqual([0, 0, 0, tiny]);
    expect(inEveryMode(1 - 2 ** -40, fp16)).toEqual([-0, -0, -tiny, -0]);
  });

  it('of infinity and zero is NaN in e4m3, and nothing finite overflows', () => {
    expect(inEveryMode(Infinity, e4m3)).toEqual([NaN, NaN, NaN, NaN]);
    expect(inEveryMode(0, e4m3)).toEqual([NaN, NaN, NaN, NaN]);
    expect(inEveryMode(2 ** 200 * 1.5, e4m3)).toEqual([208, 192, 192, 208]);
    // −1074 is beyond −448.
    expect(inEveryMode(Number.MIN_VALUE, e4m3)).toEqual([NaN, -448, NaN, -448]);
  });

  it('refuses fp64 and unknown modes', () => {
    expect(() => log2Rounded(3, formats.fp64)).toThrow(/cannot round correctly to fp64/);
    expect(() => log2Rounded(3, fp32, 'odd' as 'up')).toThrow(/no rounding mode 'odd'/);
    expect(() => log2Rounded(4, bf16, 'odd' as 'up')).toThrow(/no rounding mode 'odd'/);
  });
});

describe('laws of log2', () => {
  const positive = fc.double({ min: Number.MIN_VALUE, max: Number.MAX_VALUE, noNaN: true });

  it('is monotone in every mode, and the modes enclose one another', () => {
    fc.assert(
      fc.property(positive, positive, fc.constantFrom(...roundingTargets), (a, b, format) => {
        const [low, high] = a < b ? [a, b] : [b, a];
        for (const mode of roundingModes)
          expect(log2Rounded(low, format, mode)).toBeLessThanOrEqual(
            log2Rounded(high, format, mode),
          );
        const [nearest, towardZero, down, up] = inEveryMode(a, format);
        expect(towardZero === (a < 1 ? up : down)).toBe(true);
        expect(down <= nearest && nearest <= up).toBe(true);
        expect(up === down || (up === nextUp(format, down) && down === nextDown(format, up))).toBe(
          true,
        );
      }),
    );
  });
});
