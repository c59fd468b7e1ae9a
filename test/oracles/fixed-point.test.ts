import { describe, expect, it } from 'vitest';
import {
  bitLength,
  createExp2,
  ln2,
  log2e,
  naturalLogarithm,
  ratioToNumber,
  shiftBigInt,
} from '../../oracles/fixed-point.js';
import { randomValues } from '../../properties/problems/values.js';
import { loadMpfr, type Arena, type Real } from './mpfr.js';
import { scaled, testSeed } from '../setup/effort.js';

const mpfr = await loadMpfr();
const random = randomValues(testSeed);

/** A random integer of at most `bits` bits. */
function integer(bits: number): bigint {
  let x = 0n;
  for (let made = 0; made < bits; made += 32)
    x = (x << 32n) | BigInt(random.integer(0, 2 ** 32 - 1));
  return x >> BigInt((32 - (bits % 32)) % 32);
}

/** |fixed · 2^-bits − exact| in units of 2^-bits. */
function units(arena: Arena, fixed: bigint, bits: number, exact: Real): number {
  const difference = arena.absolute(arena.subtract(arena.scaled(fixed, -bits), exact));
  return arena.toNumber(arena.scale(difference, bits));
}

describe('fixed-point constants', () => {
  it('ln 2 and log2 e are within one unit at every precision', () => {
    // Beyond 2048 bits ln 2 is no longer cut from one that is kept.
    const precisions = [2047, 2048, 2049, 2300];
    for (let bits = 1; bits <= 1600; bits += bits < 400 ? 1 : 7) precisions.push(bits);
    for (const bits of precisions)
      mpfr.withPrecision(bits + 80, (arena) => {
        const exact = arena.ln2();
        expect(units(arena, ln2(bits), bits, exact)).toBeLessThanOrEqual(1);
        const inverse = arena.divide(arena.of(1), exact);
        expect(units(arena, log2e(bits), bits, inverse)).toBeLessThanOrEqual(1);
      });
  });
});

describe('fixed-point functions', () => {
  const precisions = [20, 21, 32, 40, 53, 64, 100, 160, 192, 200, 384, 768, 1536];

  it.each(precisions)('2^x is within 2 units for x ≤ 0 and 2 · 2^⌈x⌉ above, %i bits', (bits) => {
    const exp2 = createExp2(bits);
    const one = 1n << BigInt(bits);
    const check = (x: bigint) =>
      mpfr.withPrecision(bits + 200, (arena) => {
        const error = units(arena, exp2(x), bits, arena.exp2(arena.scaled(x, -bits)));
        const ceiling = Number(-(-x >> BigInt(bits)));
        expect(error).toBeLessThanOrEqual(2 * 2 ** Math.max(ceiling, 0));
      });
    for (const whole of [0, 1, 2, 40, -1, -2, -bits, -bits - 1, -bits - 2, -bits - 3, -10 * bits])
      for (const step of [0n, 1n, -1n, one >> 1n]) check(BigInt(whole) * one + step);
    for (let run = 0; run < scaled(bits > 300 ? 20 : 150); run++) {
      const x = integer(random.integer(1, bits + 8));
      check(random.sign() > 0 ? x % (40n * one) : -x);
    }
  });

  it.each(precisions)('ln x is within 2 units, %i bits', (bits) => {
    const check = (x: bigint) =>
      mpfr.withPrecision(2 * bits + 200, (arena) => {
        const exact = arena.log(arena.scaled(x, -bits));
        expect(units(arena, naturalLogarithm(x, bits), bits, exact)).toBeLessThanOrEqual(2);
      });
    const one = 1n << BigInt(bits);
    for (const x of [1n, 2n, 3n, one - 1n, one, one + 1n, 2n * one, (one * 3n) / 4n, one * one])
      check(x);
    for (let run = 0; run < scaled(bits > 300 ? 15 : 100); run++)
      check(integer(random.integer(1, 2 * bits)) + 1n);
  });

  it('has no logarithm of what is not positive', () => {
    for (const x of [0n, -1n]) expect(() => naturalLogarithm(x, 64)).toThrow(RangeError);
  });
});

describe('integer steps', () => {
  it('shifts are floors of products with powers of two', () => {
    expect([3, -3, 0].map((shift) => shiftBigInt(13n, shift))).toEqual([104n, 1n, 13n]);
    expect([-1, -2, -9].map((shift) => shiftBigInt(-5n, shift))).toEqual([-3n, -2n, -1n]);
  });

  it('bit lengths are those of the binary digits', () => {
    expect(bitLength(0n)).toBe(0);
    for (let run = 0; run < 200; run++) {
      const x = integer(random.integer(1, 300)) + 1n;
      expect(bitLength(x)).toBe(x.toString(2).length);
      expect(bitLength(-x)).toBe(x.toString(2).length);
    }
  });

  it('ratios are rounded once, ties to even', () => {
    expect(ratioToNumber(2n ** 53n + 1n, 1n, 0)).toBe(2 ** 53);
    expect(ratioToNumber(2n ** 53n + 3n, 1n, -53)).toBe(1 + 2 ** -51);
    expect(ratioToNumber(1n, 3n, 0)).toBe(1 / 3);
    expect(ratioToNumber(-1n, 3n, 4)).toBe(-16 / 3);
    expect(ratioToNumber(3n, 2n, -1074)).toBe(2 * 2 ** -1074);
    expect(ratioToNumber(1n, 1n, -1076)).toBe(0);
    expect(ratioToNumber(1n, 1n, 1024)).toBe(Infinity);
  });
});
