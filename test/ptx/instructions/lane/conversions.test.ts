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
