import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  conformConversion,
  conversionTargets,
  decode,
  encode,
  formats,
  hashBlock,
  mismatchingBlocks,
  smallestNormal,
  smallestSubnormal,
} from '../../src/formats/index.js';
import type { NumberFormat, RoundingMode, RoundingOptions } from '../../src/formats/index.js';
import { exponentOf } from '../../src/formats/binary64.js';
import { fromPattern32, fromPattern64, wordSource } from './exact.js';

const folder = new URL('../../fixtures/silicon/convert/', import.meta.url);
const fixture = (file: string): Buffer => readFileSync(new URL(file, folder));

/** The blocks on both sides of every exponent at which a conversion to the format changes its ways. */
function edgeBlocks(format: NumberFormat): number[] {
  const blocksPerBinade = 8;
  const exponents = [
    exponentOf(smallestSubnormal(format)) - 1,
    exponentOf(smallestSubnormal(format)),
    exponentOf(smallestNormal(format)),
    0,
    format.maxExponent,
    format.maxExponent + 1,
  ];
  const edges = exponents
    .map((exponent) => (exponent + 127) * blocksPerBinade)
    .flatMap((block) => [block - 1, block, block + blocksPerBinade - 1]);
  const inRange = [0, 0x7f8, 0x7ff, ...edges].filter((block) => block >= 0 && block < 0x800);
  return [...new Set(inRange.flatMap((block) => [block, block + 0x800]))];
}

describe.each(conversionTargets)('$instruction on an H200', (target) => {
  const expected = fixture(target.fingerprint);

  it('is matched on blocks at the edges of the format and on random ones', () => {
    const word = wordSource(51);
    const blocks = [
      ...edgeBlocks(target.format),
      ...Array.from({ length: 12 }, () => word() >>> 20),
    ];
    const seen: number[] = [];
    const progress = (done: number, total: number): void => {
      expect(total).toBe(blocks.length);
      seen.push(done);
    };
    expect(conformConversion(target, { expected, blocks }, progress)).toEqual([]);
    expect(seen).toHaveLength(blocks.length);
  });

  it('is told apart from truncation, and a false capture names its block', () => {
    const truncating = {
      ...target,
      options: { ...target.options, rounding: 'toward-zero' } as const,
    };
    expect(conformConversion(truncating, { expected, blocks: [0x3f9] })).toEqual([0x3f9]);
    const corrupted = Uint8Array.from(expected);
    corrupted[0x3f8 * 8 + 7] ^= 1;
    expect(conformConversion(target, { expected: corrupted, blocks: [0x3f8, 0x3f9] })).toEqual([
      0x3f8,
    ]);
  });
});

describe('the fingerprint', () => {
  it('refuses captures and blocks of the wrong size', () => {
    const [target] = conversionTargets;
    const expected = fixture(target.fingerprint);
    expect(() => conformConversion(target, { expected: expected.subarray(8) })).toThrow(
      /has 32760 bytes; it must have 32768/,
    );
    expect(() => conformConversion(target, { expected, blocks: [4096] })).toThrow(/no block 4096/);
  });

  it('takes every fp32 NaN for the same result, and no other result', () => {
    const constant = (bits: number) => (_: Uint32Array, results: Uint32Array) => {
      results.fill(bits);
    };
    // All inputs of block 0x7f9 are NaN; every capture with fp32 results has these words there.
    const nan = { sum: 1230388413, xor: 1902490445 };
    expect(hashBlock(constant(0x7fffffff), 0x7f9)).toEqual(nan);
    expect(hashBlock(constant(0xff800001), 0x7f9)).toEqual(nan);
    expect(hashBlock(constant(0x7f800000), 0x7f9)).not.toEqual(nan);
    expect(
      mismatchingBlocks(constant(0), { expected: new Uint8Array(32768), blocks: [1] }),
    ).toEqual([1]);
  });
});

const words = (rows: string[]): string[] => rows.flatMap((row) => row.split(' '));

describe('fp8 decoding on an H200', () => {
  const tables = JSON.parse(fixture('decode-fp8.json').toString()) as Record<string, string[]>;

  it.each([formats.e4m3, formats.e5m2])('is matched on every $name byte', (format) => {
    const captured = words(tables[`cvt.rn.f16x2.${format.name}x2`]);
    expect(captured).toHaveLength(256);
    captured.forEach((bits, byte) => {
      expect(encode(formats.fp16, decode(format, byte)), `byte ${byte}`).toBe(parseInt(bits, 16));
    });
  });
});

describe('directed, saturating and flushing conversions on an H200', () => {
  const capture = JSON.parse(fixture('edge-cases.json').toString()) as {
    inputs: { f32: string[]; f64: string[] };
    results: Record<string, string[]>;
  };
  const directions: Record<string, RoundingMode> = {
    rn: 'nearest-even',
    rz: 'toward-zero',
    rm: 'down',
    rp: 'up',
  };
  const targets = {
    f16: formats.fp16,
    bf16: formats.bf16,
    tf32: formats.tf32,
    f32: formats.fp32,
  };

  it.each(Object.keys(capture.results))('%s is matched', (instruction) => {
    const [, direction, ...rest] = instruction.split('.');
    const [target, source] = rest.slice(-2) as [keyof typeof targets, 'f32' | 'f64'];
    const options: RoundingOptions = {
      rounding: directions[direction],
      overflow: rest.includes('satfinite') ? 'saturate' : 'overflow',
      flushSubnormals: rest.includes('ftz'),
    };
    const inputs = words(capture.inputs[source]);
    const results = words(capture.results[instruction]);
    expect(results).toHaveLength(inputs.length);
    inputs.forEach((input, i) => {
      const value =
        source === 'f32' ? fromPattern32(parseInt(input, 16)) : fromPattern64(BigInt(`0x${input}`));
      const captured = parseInt(results[i], 16);
      if (source === 'f64' && Number.isNaN(value)) {
        // The silicon passes the sign and payload of an fp64 NaN on; a JavaScript NaN has neither.
        expect(decode(targets[target], captured)).toBe(NaN);
      } else {
        expect(encode(targets[target], value, options), input).toBe(captured);
      }
    });
  });
});
