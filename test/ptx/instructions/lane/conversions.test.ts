import fc from 'fast-check';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { findLaneInstruction } from '../../../../src/ptx/instructions/index.js';
import { bits64, float32, float64 } from '../../../arith/exact.js';
import { row } from './rows.js';

describe('conversions', () => {
  interface EdgeCases {
    readonly inputs: Readonly<Record<'f32' | 'f64', readonly string[]>>;
    readonly results: Readonly<Record<string, readonly string[]>>;
  }
  const edges = JSON.parse(
    readFileSync('fixtures/silicon/sm_90/edge-cases.json', 'utf8'),
  ) as EdgeCases;
  const words = (lines: readonly string[]) => lines.join(' ').split(' ');

  it.each(Object.keys(edges.results))('%s gives what an H200 gives', (name) => {
    const source = name.endsWith('.f64') ? 'f64' : 'f32';
    const [opcode, ...modifiers] = name.split('.');
    const instruction = findLaneInstruction(opcode, modifiers);
    expect(instruction).not.toBe(null);
    const results = words(edges.results[name]).map((text) => BigInt(`0x${text}`));
    words(edges.inputs[source]).forEach((text, i) => {
      const bits = BigInt(`0x${text}`);
      const result = instruction?.evaluate(source === 'f64' ? bits : Number(bits));
      expect(BigInt(result as number), `${name} ${text}`).toBe(results[i]);
    });
  });

  it('of short formats give back every number', () => {
    for (const [format, bits] of [
      ['e4m3x2', 8],
      ['e5m2x2', 8],
      ['e2m3x2', 6],
      ['e3m2x2', 6],
      ['e2m1x2', 4],
    ] as const) {
      const place = bits === 4 ? 4 : 8;
      for (let low = 0; low < 2 ** bits; low++) {
        const word = (low << place) | (2 ** bits - 1 - low);
        const halves = row(`cvt.rn.f16x2.${format}`).evaluate(word) as number;
        const [high, rest] = [halves >>> 16, halves & 0xffff].map(
          (half) => row('cvt.f32.f16').evaluate(half) as number,
        );
        const isNan = [high, rest].some((single) => (single & 0x7fffffff) > 0x7f800000);
        if (
          isNan ||
          (format === 'e5m2x2' &&
            [high, rest].some((single) => (single & 0x7fffffff) === 0x7f800000))
        )
          continue;
        expect(row(`cvt.rn.satfinite.${format}.f32`).evaluate(high, rest)).toBe(word);
      }
    }
    expect(row('cvt.rn.satfinite.e2m3x2.f32').evaluate(0x41000000, 0x7fc00000)).toBe(0x1f1f);
    expect(row('cvt.rn.bf16x2.ue8m0x2').evaluate(0xff00)).toBe(0x7fff0040);
  });

  it('to exponents of scales take the power of two below the magnitude, or above it', () => {
    const toward = (mode: string, bits: number) =>
      Number(row(`cvt.${mode}.ue8m0x2.f32`).evaluate(bits, 0)) >>> 8;
    for (let field = 1; field < 254; field++) {
      const power = field * 2 ** 23;
      for (const sign of [0, 2 ** 31]) {
        expect(toward('rz', power + sign)).toBe(field);
        expect(toward('rp', power + sign)).toBe(field);
        expect(toward('rz', power + 1 + sign)).toBe(field);
        expect(toward('rp', power + 1 + sign)).toBe(field + 1);
      }
    }
    // 2^-127 and what is below; the largest finite number; infinity; NaN.
    expect(['rz', 'rp'].map((mode) => toward(mode, 0x00400000))).toEqual([0, 0]);
    expect(['rz', 'rp'].map((mode) => toward(mode, 0x00400001))).toEqual([0, 1]);
    expect(['rz', 'rp'].map((mode) => toward(mode, 1))).toEqual([0, 0]);
    const modes = ['rz', 'rz.satfinite', 'rp', 'rp.satfinite'];
    expect(modes.map((mode) => toward(mode, 0x7f7fffff))).toEqual([254, 254, 255, 254]);
    expect(modes.map((mode) => toward(mode, 0x7f800000))).toEqual([255, 254, 255, 254]);
    expect(modes.map((mode) => toward(mode, 0x7fc00000))).toEqual([255, 255, 255, 255]);
    fc.assert(
      fc.property(fc.nat(0xffff), fc.nat(0xffff), fc.constantFrom(...modes), (a, b, mode) => {
        const halves = row(`cvt.${mode}.ue8m0x2.bf16x2`).evaluate((a * 2 ** 16 + b) >>> 0);
        const floats = [a, b].map((half) => (half << 16) >>> 0);
        expect(halves).toBe(row(`cvt.${mode}.ue8m0x2.f32`).evaluate(...floats));
      }),
    );
  });

  it.each([
    ['f16x2', 13, 10, 15, -14],
    ['bf16x2', 16, 7, 127, -126],
  ] as const)(
    'by random bits round up as often as they should: %s',
    (name, bits, places, top, least) => {
      const convert = row(`cvt.rs.${name}.f32`);
      fc.assert(
        fc.property(
          fc.integer({ min: least - 3, max: top - 1 }),
          fc.nat(0x7fffff),
          (exponent, fraction) => {
            const value = Math.fround((1 + fraction / 2 ** 23) * 2 ** exponent);
            const single = new Uint32Array(Float32Array.of(value).buffer)[0];
            const place = 2 ** (Math.max(exponent, least) - places);
            const below = Math.floor(value / place) * place;
            // Of 2^bits words as many round up as the part of a place that is cut off, in units of 2^-bits.
            const due = Math.floor((value / place - Math.floor(value / place)) * 2 ** bits);
            const numberOf = (half: number): number => {
              const [e, f] = [half >>> places, half % 2 ** places];
              return e === 0
                ? f * 2 ** (least - places)
                : (1 + f / 2 ** places) * 2 ** (e - 1 + least);
            };
            const high = (random: number) =>
              numberOf(Number(convert.evaluate(single, 0, random * 2 ** 16)) >>> 16);
            expect(high(0)).toBe(below);
            if (due > 0) expect(high(2 ** bits - due)).toBe(below + place);
            expect(high(2 ** bits - due - 1)).toBe(below);
            // The lower half is the second operand's.
            const low = Number(convert.evaluate(0, single, 2 ** bits - 1)) & 0xffff;
            expect(numberOf(low)).toBe(due > 0 ? below + place : below);
          },
        ),
      );
    },
  );

  it('by random bits of 0 are those toward zero, and keep what a format has', () => {
    for (const name of ['f16x2', 'bf16x2'] as const)
      fc.assert(
        fc.property(fc.nat(0xffffffff), fc.nat(0xffffffff), (a, b) => {
          const due = row(`cvt.rz.satfinite.${name}.f32`).evaluate(a, b);
          expect(row(`cvt.rs.satfinite.${name}.f32`).evaluate(a, b, 0)).toBe(due);
        }),
      );
    for (const [name, bits] of [
      ['e4m3', 8],
      ['e5m2', 8],
      ['e2m3', 6],
      ['e3m2', 6],
    ] as const)
      for (let code = 0; code < 2 ** bits; code++) {
        const half = Number(row(`cvt.rn.f16x2.${name}x2`).evaluate(code)) & 0xffff;
        const single = Number(row('cvt.f32.f16').evaluate(half));
        if ((single & 0x7fffffff) >= 0x7f800000) continue;
        // No place is cut off, so that no random bits change it.
        const words = [single, single, single, single];
        const result = row(`cvt.rs.satfinite.${name}x4.f32`).evaluate(...words, 0xffffffff);
        expect(result).toBe((code * 0x01010101) >>> 0);
      }
    const four = row('cvt.rs.satfinite.e4m3x4.f32');
    // 1 + 1/16 is halfway between two numbers of e4m3: the upper half of the bits is a's and b's.
    const middle = 0x3f880000;
    expect(four.evaluate(middle, middle, middle, middle, 0x8000_7fff)).toBe(0x39393838);
    expect(four.evaluate(0x7f800000, 0xff800000, 0x7fc00000, 0, 0)).toBe(0x7efe7f00);
    expect(row('cvt.rs.relu.f16x2.f32').evaluate(0xbf800000, 0x7f800000, 0)).toBe(0x00007c00);
  });

  it('between short formats and bf16 are those through fp32', () => {
    for (const name of ['e4m3x2', 'e5m2x2', 'e2m3x2', 'e3m2x2', 'e2m1x2']) {
      fc.assert(
        fc.property(fc.nat(0xffff), fc.nat(0xffff), (a, b) => {
          const pair = (a * 2 ** 16 + b) >>> 0;
          const due = row(`cvt.rn.satfinite.${name}.f32`).evaluate(a * 2 ** 16, b * 2 ** 16);
          expect(row(`cvt.rn.satfinite.${name}.bf16x2`).evaluate(pair)).toBe(due);
          const back = Number(row(`cvt.rn.bf16x2.${name}`).evaluate(Number(due)));
          const singles = [back & 0xffff0000, back << 16].map((word) => word >>> 0);
          const isNan = singles.some((single) => (single & 0x7fffffff) > 0x7f800000);
          if (!isNan) expect(row(`cvt.rn.satfinite.${name}.f32`).evaluate(...singles)).toBe(due);
        }),
      );
    }
  });

  it('between integers and numbers keep what they can', () => {
    fc.assert(
      fc.property(fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n), (integer) => {
        const bits = BigInt.asUintN(64, integer);
        const number = row('cvt.rn.f64.s64').evaluate(bits) as bigint;
        expect(float64(number)).toBe(Number(integer));
        const down = float64(row('cvt.rm.f64.s64').evaluate(bits) as bigint);
        const up = float64(row('cvt.rp.f64.s64').evaluate(bits) as bigint);
        expect(BigInt(down) <= integer && BigInt(up) >= integer).toBe(true);
        const single = float32(row('cvt.rz.f32.s64').evaluate(bits) as number);
        const beyond = Math.abs(single) + Math.max(Math.abs(single) * 2 ** -23, 1);
        const size = integer < 0n ? -integer : integer;
        expect(BigInt(Math.abs(single)) <= size && size <= BigInt(Math.ceil(beyond))).toBe(true);
      }),
    );
    expect(row('cvt.rzi.s64.f64').evaluate(bits64(-1.9))).toBe(2n ** 64n - 1n);
    expect(row('cvt.rni.u8.f32').evaluate(0x43ff8000)).toBe(255);
    expect(row('cvt.rni.s32.f64').evaluate(bits64(2.5))).toBe(2);
    expect(row('cvt.rzi.s64.f32').evaluate(0x7fc00000)).toBe(2n ** 63n);
    expect(row('cvt.s8.s32', [32], 1).evaluate(0x80)).toBe(0xffffff80);
    expect(row('cvt.s8.s32', [16], 1).evaluate(0x80)).toBe(0xff80);
    expect(row('cvt.sat.u8.s32').evaluate(0xfffffff0)).toBe(0);
    expect(row('cvt.pack.sat.s16.s32').evaluate(0x12345, 0xffff0000)).toBe(0x7fff8000);
    expect(row('cvt.pack.sat.u8.s32.b32').evaluate(300, 0xffffffff, 0x1234)).toBe(0x1234ff00);
    expect(row('cvt.rna.tf32.f32').evaluate(0x3f801000)).toBe(0x3f802000);
    expect(row('cvt.rp.ftz.f16.f32').evaluate(1)).toBe(1);
    expect(row('cvt.ftz.f64.f32').evaluate(0x7f800001)).toBe(0x7fffffffe0000000n);
    // An odd integer of 55 bits, next to halfway between two of 24.
    expect(row('cvt.rn.f32.s64').evaluate((2n ** 24n + 1n) * 2n ** 38n + 1n)).toBe(0x5e800001);
    expect(row('cvt.sat.f32.f32').evaluate(0x80000000)).toBe(0);
  });
});
