import { describe, expect, it } from 'vitest';
import { readingsOf } from '../../src/report/text/launch/breaks.js';

/** Bits of a number by the platform's own arithmetic. */
const bits64 = (value: number) => new BigUint64Array(Float64Array.of(value).buffer)[0];
const bits32 = (value: number) => BigInt(new Uint32Array(Float32Array.of(value).buffer)[0]);

describe('the bits of a register', () => {
  it.each([
    ['f32', bits32(0.1), ['0.1']],
    ['f32', bits32(-0), ['-0']],
    ['f32', 0x7fc00000n, ['NaN']],
    ['f64', bits64(1 / 3), [String(1 / 3)]],
    ['f16', 0xbc00n, ['-1']],
    // The high half of 1.5 as an f32.
    ['bf16', bits32(1.5) >> 16n, ['1.5']],
    ['bf16x2', (bits32(-2) & 0xffff0000n) | (bits32(1.5) >> 16n), ['1.5, -2']],
    ['f16x2', 0x3c00c000n, ['-2, 1']],
    ['s32', 0xffffffffn, ['-1']],
    ['u32', 0xffffffffn, ['4294967295']],
    ['s64', (1n << 64n) - 5n, ['-5']],
    ['u16', 0xffffn, ['65535']],
    ['pred', 1n, ['true']],
    ['pred', 0n, ['false']],
    ['b32', bits32(2), ['1073741824', '2']],
    ['b64', bits64(-1), [String(BigInt.asIntN(64, bits64(-1))), '-1']],
    ['b16', 0x4000n, ['16384', '2', '2']],
    ['b128', 1n, []],
  ])('as %s: %s', (type, bits, texts) => {
    expect(readingsOf(type).map(({ read }) => read(bits))).toEqual(texts);
  });

  it('tell floats of each format apart', () => {
    const [f32] = readingsOf('f32');
    const [bf16] = readingsOf('bf16');
    const [f16] = readingsOf('f16');
    for (const start of [1n, 0x3f800000n, 0x7f000000n])
      for (let i = 0n; i < 100n; i++) expect(bits32(Number(f32.read(start + i)))).toBe(start + i);
    const all = (read: (bits: bigint) => string, infinity: bigint) =>
      new Set(Array.from({ length: Number(infinity) }, (_, i) => read(BigInt(i)))).size;
    expect(all(bf16.read, 0x7f80n)).toBe(0x7f80);
    expect(all(f16.read, 0x7c00n)).toBe(0x7c00);
  });
});
