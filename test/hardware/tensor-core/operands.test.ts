import { describe, expect, it } from 'vitest';
import { decode, formats } from '../../../src/formats/index.js';
import { decodeOperand, operandFormats } from '../../../src/hardware/index.js';
import type { OperandFormatName } from '../../../src/hardware/index.js';
import { RequestError } from '../../../src/request-error.js';

/** Of the OCP Microscaling specification 1.0, tables 4 to 6: all values of one sign. */
const shortFormats = {
  e2m1: [0, 0.5, 1, 1.5, 2, 3, 4, 6],
  e3m2: [
    ...[0, 0.0625, 0.125, 0.1875],
    ...[-2, -1, 0, 1, 2, 3, 4].flatMap((e) => [1, 1.25, 1.5, 1.75].map((s) => s * 2 ** e)),
  ],
  e2m3: [
    ...[0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875],
    ...[0, 1, 2].flatMap((e) => Array.from({ length: 8 }, (_, i) => (1 + i / 8) * 2 ** e)),
  ],
} as const;

describe.each(Object.keys(operandFormats) as OperandFormatName[])('%s operands', (name) => {
  const format = operandFormats[name];
  const patterns = Math.min(2 ** format.storageBits, 2 ** 16);
  /** All patterns of short formats; of tf32 those of the upper half and some of its padding. */
  const every = Array.from({ length: patterns }, (_, i) =>
    format.storageBits === 32 ? i * 2 ** 16 + ((i * 40503) % 2 ** 16) : i,
  );
  const smallestNormal = 1 - format.exponentBias;

  it('have the value of their pattern', () => {
    for (const bits of every) {
      const { significand, exponent } = decodeOperand(format, bits);
      const value =
        name in shortFormats
          ? (bits >= patterns / 2 ? -1 : 1) *
            shortFormats[name as keyof typeof shortFormats][bits % (patterns / 2)]
          : decode(formats[name as keyof typeof formats] as typeof formats.fp32, bits);
      if (!Object.is(significand * 2 ** exponent, value))
        expect.fail(`${bits} is ${significand} · 2^${exponent}, not ${value}`);
    }
  });

  it('have significands from 1 to 2, or below 1 at the smallest exponent', () => {
    for (const bits of every) {
      const { significand, exponent } = decodeOperand(format, bits);
      const magnitude = Math.abs(significand);
      if (!Number.isFinite(significand)) continue;
      const normal = magnitude >= 1 && magnitude < 2 && exponent >= smallestNormal;
      const subnormal = magnitude < 1 && exponent === smallestNormal;
      if (!normal && !subnormal) expect.fail(`${bits}: ${significand} · 2^${exponent}`);
    }
  });

  it.each([-1, 0.5, 2 ** format.storageBits, NaN])('refuse the pattern %d', (bits) => {
    expect(() => decodeOperand(format, bits)).toThrow(RequestError);
  });
});

it('drops the padding of tf32 before it looks for NaN', () => {
  expect(decodeOperand(operandFormats.tf32, 0x7f800001).significand).toBe(Infinity);
  expect(decodeOperand(operandFormats.tf32, 0x7f802000).significand).toBeNaN();
  expect(decodeOperand(operandFormats.tf32, 0xff801fff).significand).toBe(-Infinity);
});
