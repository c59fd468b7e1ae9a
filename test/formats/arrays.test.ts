import { Float16Array } from '@petamoriken/float16';
import { describe, expect, it } from 'vitest';
import {
  convertFloat32Bits,
  decode,
  decodeToFloat32,
  decodeToFloat64,
  encode,
  encodeFromFloat32,
  encodeFromFloat64,
  formats,
} from '../../src/formats/index.js';
import { patternsOf } from '../../src/formats/tensor.js';
import type { TensorData } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import { doubleSource, fromPattern64, wordSource } from './exact.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

/** Storage of a format that holds every pattern of a short format, or random ones. */
function everyPattern(format: (typeof formats)[keyof typeof formats]): TensorData {
  const storage = encodeFromFloat64(format, new Float64Array(65536));
  const words = patternsOf(storage, format);
  const random = wordSource(21);
  for (let i = 0; i < words.length; i++)
    words[i] = format.storageBits > 16 ? random() : i % 2 ** format.storageBits;
  return storage;
}

function patternOf(data: TensorData, format: (typeof formats)[keyof typeof formats], i: number) {
  const words = patternsOf(data, format);
  return format.storageBits === 64 ? new BigUint64Array(words.buffer)[i] : words[i];
}

describe.each(Object.values(formats))('decoding arrays of $name', (format) => {
  const data = everyPattern(format);

  inTurn('reads every element as decode does', () => {
    const values64 = decodeToFloat64(data, format);
    const values32 = decodeToFloat32(data, format);
    for (let i = 0; i < data.length; i++) {
      const expected = decode(format, patternOf(data, format, i));
      const same =
        Object.is(values64[i], expected) && Object.is(values32[i], Math.fround(expected));
      if (!same) expect.fail(`element ${i}: ${values64[i]}, ${values32[i]}, not ${expected}`);
    }
  });

  it.each([decodeToFloat64, decodeToFloat32])('reads a range into a longer array', (decodeTo) => {
    const whole = decodeTo(data, format, undefined);
    const out = decodeTo === decodeToFloat64 ? new Float64Array(3003) : new Float32Array(3003);
    out.fill(-7, 3000);
    expect(decodeTo(data, format, out as never, 1001, 4001)).toBe(out);
    expect(out.subarray(0, 3000)).toEqual(whole.subarray(1001, 4001));
    expect([...out.subarray(3000)]).toEqual([-7, -7, -7]);
    expect(decodeTo(data, format, undefined, 5, 5)).toHaveLength(0);
  });

  it('refuses a range outside the array and an output that is too short', () => {
    for (const [start, end] of [
      [-1, 2],
      [3, 2],
      [0, data.length + 1],
      [0.5, 2],
    ]) {
      expect(() => decodeToFloat64(data, format, undefined, start, end)).toThrow(RequestError);
    }
    expect(() => decodeToFloat64(data, format, new Float64Array(9), 0, 10)).toThrow(
      'the output array holds 9 elements but 10 are decoded; pass a longer one',
    );
  });
});

describe('storage', () => {
  const values = Float64Array.of(1, -2.5, NaN, 0.1);

  it.each([
    ['fp64', Float64Array],
    ['fp32', Float32Array],
    ['tf32', Float32Array],
    ['bf16', Uint16Array],
    ['fp16', Float16Array],
    ['e4m3', Uint8Array],
    ['e5m2', Uint8Array],
    ['e2m1', Uint8Array],
  ] as const)('of %s is what a tensor of it holds', (name, constructor) => {
    expect(encodeFromFloat64(formats[name], values)).toBeInstanceOf(constructor);
    expect(encodeFromFloat32(formats[name], Float32Array.from(values))).toHaveLength(4);
  });

  it('is read at its byte offset', () => {
    const buffer = new ArrayBuffer(32);
    new Uint16Array(buffer).set([0x3c00, 0xc000], 5);
    expect([...decodeToFloat64(new Float16Array(buffer, 10, 2), formats.fp16)]).toEqual([1, -2]);
    expect([...decodeToFloat64(new Uint16Array(buffer, 10, 1), formats.bf16)]).toEqual([
      decode(formats.bf16, 0x3c00),
    ]);
  });

  it('of another format is refused by name', () => {
    expect(() => decodeToFloat64(new Uint16Array(2), formats.fp16)).toThrow(
      'fp16 is stored as Float16Array but Uint16Array was given',
    );
    expect(() => decodeToFloat64(new Float16Array(2), formats.bf16)).toThrow(RequestError);
    expect(() => decodeToFloat32(new Float64Array(2), formats.fp32)).toThrow(RequestError);
  });

  it("may be a Float16Array that is a typed array of the engine's", () => {
    class EngineFloat16Array extends Uint16Array {
      override get [Symbol.toStringTag](): 'Uint16Array' {
        return 'Float16Array' as 'Uint16Array';
      }
    }
    const data = new EngineFloat16Array([0x3c00, 0xc000]);
    expect([...decodeToFloat64(data, formats.fp16)]).toEqual([1, -2]);
  });

  const native = (globalThis as { Float16Array?: typeof Float16Array }).Float16Array;
  it.runIf(native !== undefined)("may be the runtime's own Float16Array", () => {
    expect([...decodeToFloat64(new native!([1, -2]), formats.fp16)]).toEqual([1, -2]);
  });
});

describe('encoding arrays of a wide format', () => {
  const next = doubleSource(31, -152, 130);
  const values = Float64Array.from([...Array.from({ length: 5000 }, next), NaN, -NaN, -0]);

  it.each([formats.fp32, formats.fp64])('$name: stores the bits of encode', (format) => {
    for (const source of [values, Float32Array.from(values)]) {
      const storage =
        source instanceof Float64Array
          ? encodeFromFloat64(format, source)
          : encodeFromFloat32(format, source);
      source.forEach((value, i) => {
        expect(patternOf(storage, format, i)).toBe(encode(format, value));
      });
    }
  });
});

describe('convertFloat32Bits', () => {
  const bits = Uint32Array.of(0x3f800000, 0xbf800001, 0x7f800001, 0x00000001, 0xff800000);

  it('gives the bits of encode in any array wide enough', () => {
    for (const format of [
      formats.bf16,
      formats.fp16,
      formats.tf32,
      formats.e4m3,
      formats.e5m2,
      formats.e2m1,
    ]) {
      const out = new Uint32Array(bits.length);
      convertFloat32Bits(format, bits, out);
      const values = new Float32Array(bits.buffer);
      expect([...out]).toEqual([...values].map((value) => encode(format, value)));
    }
  });

  it('refuses an output too short or too narrow, and a format too long', () => {
    const { bf16, fp32 } = formats;
    expect(() => convertFloat32Bits(bf16, bits, new Uint16Array(4))).toThrow(/holds 4 elements/);
    expect(() => convertFloat32Bits(bf16, bits, new Uint8Array(5))).toThrow(/pass a wider one/);
    expect(() => convertFloat32Bits(fp32 as never, bits, new Uint32Array(5))).toThrow(
      /precision up to 11, not fp32/,
    );
  });
});

it('reads the sticky bit of fp64 below the high word', () => {
  const justAboveTie = fromPattern64(0x3ff0100000000001n);
  const [tie, above] = patternsOf(
    encodeFromFloat64(formats.bf16, Float64Array.of(1 + 2 ** -8, justAboveTie)),
    formats.bf16,
  );
  expect([tie, above]).toEqual([0x3f80, 0x3f81]);
});
