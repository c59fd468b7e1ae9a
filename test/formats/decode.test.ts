import { describe, expect, it } from 'vitest';
import { decode, encode, formats } from '../../src/formats/index.js';
import { RequestError } from '../../src/request-error.js';
import { scaled, testSeed } from '../setup/effort.js';
import { fromCount, fromPattern32, fromPattern64, parsePattern, wordSource } from './exact.js';

const tabulated = [formats.bf16, formats.fp16, formats.e4m3, formats.e5m2, formats.e2m1];

describe.each(tabulated)('every $name pattern', (format) => {
  const patterns = 2 ** format.storageBits;
  const signBit = patterns / 2;

  it('has the value its fields spell out', () => {
    for (let bits = 0; bits < patterns; bits++) {
      const { negative, count } = parsePattern(format, BigInt(bits));
      const magnitude = count === 'nan' ? NaN : count === 'inf' ? Infinity : fromCount(count);
      const value = decode(format, bits);
      if (!Object.is(value, negative && count !== 'nan' ? -magnitude : magnitude)) {
        expect.fail(`0x${bits.toString(16)} decodes to ${value}`);
      }
    }
  });

  it('increases with the pattern, and the negatives mirror it', () => {
    let previous = -1;
    for (let bits = 0; bits < signBit; bits++) {
      const value = decode(format, bits);
      if (Number.isNaN(value)) continue;
      if (!(value > previous && Object.is(decode(format, bits + signBit), -value))) {
        expect.fail(`0x${bits.toString(16)} decodes to ${value} after ${previous}`);
      }
      previous = value;
    }
    expect(previous).toBe(format.specials === 'ieee' ? Infinity : format.maxFinite);
  });

  it('encodes back to itself, or to the canonical NaN', () => {
    let nans = 0;
    for (let bits = 0; bits < patterns; bits++) {
      const value = decode(format, bits);
      if (Number.isNaN(value)) nans++;
      const expected = Number.isNaN(value) ? format.canonicalNan : bits;
      if (encode(format, value) !== expected) expect.fail(`0x${bits.toString(16)} does not return`);
    }
    const expected = { ieee: 2 ** format.precision - 2, fn: 2, finite: 0 };
    expect(nans).toBe(expected[format.specials]);
  });
});

describe('wide formats', () => {
  it('reads fp32 as the machine does, and back', () => {
    const word = wordSource(64 * testSeed + 1);
    for (let i = 0; i < scaled(5000); i++) {
      const bits = word();
      const value = fromPattern32(bits);
      expect(decode(formats.fp32, bits)).toBe(value);
      expect(encode(formats.fp32, value)).toBe(Number.isNaN(value) ? 0x7fffffff : bits);
    }
  });

  it('reads fp64 as the machine does, and back', () => {
    const word = wordSource(64 * testSeed + 2);
    for (let i = 0; i < scaled(5000); i++) {
      const bits = (BigInt(word()) << 32n) | BigInt(word());
      const value = fromPattern64(bits);
      expect(decode(formats.fp64, bits)).toBe(value);
      expect(encode(formats.fp64, value)).toBe(Number.isNaN(value) ? 0x7ff8000000000000n : bits);
    }
  });

  it('ignores the padding of tf32, so that a NaN with its payload there is an infinity', () => {
    const word = wordSource(64 * testSeed + 3);
    for (let i = 0; i < scaled(2500); i++) {
      const bits = word();
      expect(decode(formats.tf32, bits)).toBe(fromPattern32((bits & 0xffffe000) >>> 0));
    }
    expect(decode(formats.tf32, 0x7f801fff)).toBe(Infinity);
    expect(decode(formats.tf32, 0xff800001)).toBe(-Infinity);
    expect(decode(formats.tf32, 0x7f802000)).toBe(NaN);
  });

  it('gives every format a canonical NaN that it reads as NaN, or as its largest number', () => {
    for (const format of Object.values(formats)) {
      const nan = format.specials === 'finite' ? format.maxFinite : NaN;
      expect(decode(format, format.canonicalNan)).toBe(nan);
      expect(encode(format, NaN)).toBe(format.canonicalNan);
      expect(encode(format, NaN, { overflow: 'saturate' })).toBe(format.canonicalNan);
    }
  });
});

describe('what is no bit pattern', () => {
  it.each([-1, 256, 0.5, NaN, 1n])('refuses %s for e4m3', (bits) => {
    expect(() => decode(formats.e4m3, bits as number)).toThrow(RequestError);
  });

  it.each([0, -1n, 2n ** 64n])('refuses %s for fp64', (bits) => {
    expect(() => decode(formats.fp64, bits as bigint)).toThrow(/fp64 bit pattern; pass a bigint/);
  });
});
