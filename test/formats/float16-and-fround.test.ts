import { Float16Array, f16round } from '@petamoriken/float16';
import { describe, expect, it } from 'vitest';
import { decode, encode, formats, round } from '../../src/formats/index.js';
import { doubleSource, fromPattern64, wordSource } from './exact.js';

describe('fp16 against @petamoriken/float16', () => {
  it('agrees on every pattern', () => {
    const bits = Uint16Array.from({ length: 65536 }, (_, i) => i);
    const values = Float32Array.from(new Float16Array(bits.buffer));
    for (let i = 0; i < 65536; i++) {
      if (!Object.is(decode(formats.fp16, i), values[i])) expect.fail(`0x${i.toString(16)}`);
    }
  });

  it('agrees on random doubles around its range and on the boundary of overflow', () => {
    const next = doubleSource(5, -30, 18);
    const values = [...Array.from({ length: 200_000 }, next), 65519.999999999993, 65520, -65520];
    for (const value of values) {
      if (!Object.is(round(formats.fp16, value), f16round(value))) expect.fail(`${value}`);
    }
  });
});

describe('fp32 against Math.fround', () => {
  it('agrees on random doubles of every bit pattern, and of fp32 range', () => {
    const word = wordSource(6);
    const ranged = doubleSource(7, -152, 129);
    const conversion = new Float32Array(1);
    const conversionBits = new Uint32Array(conversion.buffer);
    for (let i = 0; i < 200_000; i++) {
      const value =
        i % 2 === 0 ? ranged() : fromPattern64((BigInt(word()) << 32n) | BigInt(word()));
      conversion[0] = value;
      const same =
        Object.is(round(formats.fp32, value), Math.fround(value)) &&
        (Number.isNaN(value) || encode(formats.fp32, value) === conversionBits[0]);
      if (!same) expect.fail(`${value}`);
    }
  });
});
