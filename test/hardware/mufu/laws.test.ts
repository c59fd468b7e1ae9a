import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decode, encode, formats } from '../../../src/formats/index.js';
import { specialFunctionEvidence, specialFunctions } from '../../../src/hardware/index.js';
import type { SpecialFunctionName } from '../../../src/hardware/index.js';
import { fp32Names, halfNames } from './captures.js';

const { fp32 } = formats;
const float32Bits = fc.integer({ min: 0, max: 0xffffffff });
/** Bit patterns of the positive normal numbers from 2^low to 2^high. */
function normals(low: number, high: number): fc.Arbitrary<number> {
  return fc.integer({ min: encode(fp32, 2 ** low), max: encode(fp32, 2 ** high) });
}
const runs = { numRuns: 2000 };

function value(name: SpecialFunctionName, bits: number): number {
  return decode(formats[specialFunctions[name].format], specialFunctions[name].evaluate(bits));
}

describe('every instruction', () => {
  test.each([...fp32Names, ...halfNames])('%s gives a bit pattern of its format', (name) => {
    const { format, evaluate } = specialFunctions[name];
    const limit = format === 'fp32' ? 2 ** 32 : 2 ** 16;
    fc.assert(
      fc.property(fc.integer({ min: 0, max: limit - 1 }), (bits) => {
        const result = evaluate(bits);
        return Number.isInteger(result) && 0 <= result && result < limit;
      }),
      runs,
    );
  });

  test.each([...fp32Names, ...halfNames])('%s gives the canonical NaN for every NaN', (name) => {
    const format = formats[specialFunctions[name].format];
    const first = encode(format, Infinity) + 1;
    const sign = 2 ** (format.storageBits - 1);
    fc.assert(
      fc.property(fc.integer({ min: first, max: sign - 1 }), fc.boolean(), (nan, negative) => {
        const bits = negative ? nan + sign : nan;
        expect(specialFunctions[name].evaluate(bits)).toBe(format.canonicalNan);
      }),
    );
  });
});

describe('accuracy that the PTX ISA promises', () => {
  test('ex2: within 2^-22 of 2^x, relatively', () => {
    const property = (name: SpecialFunctionName) =>
      fc.property(normals(-30, 6.9), fc.boolean(), (magnitude, negative) => {
        const bits = negative ? magnitude + 0x80000000 : magnitude;
        const exact = 2 ** decode(fp32, bits);
        expect(Math.abs(value(name, bits) / exact - 1)).toBeLessThan(2 ** -22);
      });
    fc.assert(property('ex2.approx.ftz.f32'), runs);
    fc.assert(property('ex2.approx.f32'), runs);
  });

  test('rcp: within 1 ulp of 1/x', () => {
    fc.assert(
      fc.property(normals(-126, 125.9), (bits) => {
        const exact = 1 / decode(fp32, bits);
        const ulp = 2 ** (Math.floor(Math.log2(exact)) - 23);
        expect(Math.abs(value('rcp.approx.ftz.f32', bits) - exact)).toBeLessThanOrEqual(ulp);
      }),
      runs,
    );
  });

  test('rsqrt: within 2^-22.9 of 1/sqrt x, relatively', () => {
    fc.assert(
      fc.property(normals(-126, 127.9), (bits) => {
        const exact = 1 / Math.sqrt(decode(fp32, bits));
        const error = Math.abs(value('rsqrt.approx.ftz.f32', bits) / exact - 1);
        expect(error).toBeLessThanOrEqual(2 ** -22.9);
      }),
      runs,
    );
  });

  test('lg2: within 2^-22 of log2 x, absolutely in (1/2, 2) and relatively elsewhere', () => {
    fc.assert(
      fc.property(normals(-126, 127.9), (bits) => {
        const x = decode(fp32, bits);
        const exact = Math.log2(x);
        const scale = 0.5 < x && x < 2 ? 1 : Math.abs(exact);
        const error = Math.abs(value('lg2.approx.ftz.f32', bits) - exact) / scale;
        expect(error).toBeLessThan(2 ** -22);
      }),
      runs,
    );
  });

  test('tanh: within 2^-16.4 of tanh x, relatively', () => {
    fc.assert(
      fc.property(normals(-126, 127.9), (bits) => {
        const exact = Math.tanh(decode(fp32, bits));
        expect(Math.abs(value('tanh.approx.f32', bits) / exact - 1)).toBeLessThan(2 ** -16.4);
      }),
      runs,
    );
  });
});

describe('laws', () => {
  test.each(['rcp.approx.ftz.f32', 'tanh.approx.f32'] as const)('%s is odd', (name) => {
    const { evaluate } = specialFunctions[name];
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 0x7f800000 }), (bits) => {
        expect(evaluate(bits + 0x80000000)).toBe(evaluate(bits) + 0x80000000);
      }),
      runs,
    );
  });

  test('ex2 of a whole number is the power of two', () => {
    for (let exponent = -126; exponent < 128; exponent++) {
      const bits = encode(fp32, exponent);
      expect(value('ex2.approx.ftz.f32', bits)).toBe(2 ** exponent);
      expect(value('ex2.approx.f32', bits)).toBe(2 ** exponent);
    }
  });

  test('below -126, ex2 flushes with .ftz and otherwise squares the result for the half', () => {
    for (let exponent = -149; exponent < -126; exponent++) {
      const bits = encode(fp32, exponent);
      expect(value('ex2.approx.ftz.f32', bits)).toBe(0);
      const root = value('ex2.approx.ftz.f32', encode(fp32, exponent / 2));
      expect(value('ex2.approx.f32', bits)).toBe(Math.fround(root * root));
    }
  });

  test('rcp, rsqrt and lg2 are exact at powers of two, of four, and upward of two', () => {
    for (let exponent = -126; exponent <= 126; exponent++) {
      const bits = encode(fp32, 2 ** exponent);
      expect(value('rcp.approx.ftz.f32', bits)).toBe(2 ** -exponent);
      if (exponent % 2 === 0)
        expect(value('rsqrt.approx.ftz.f32', bits)).toBe(2 ** (-exponent / 2));
      if (exponent >= 0) expect(value('lg2.approx.ftz.f32', bits)).toBe(exponent);
    }
  });

  test('no .ftz instruction delivers a subnormal number', () => {
    for (const name of fp32Names.filter((candidate) => candidate.includes('.ftz.'))) {
      fc.assert(
        fc.property(float32Bits, (bits) => {
          const magnitude = specialFunctions[name].evaluate(bits) & 0x7fffffff;
          return magnitude === 0 || magnitude >= 0x00800000;
        }),
        runs,
      );
    }
  });
});

test('only the architecture that was compared claims silicon', () => {
  const measured = Object.entries(specialFunctionEvidence)
    .filter(([, { evidence }]) => evidence === 'silicon')
    .map(([architecture]) => architecture);
  expect(measured).toEqual(['sm_90']);
});
