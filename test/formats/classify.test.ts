import { describe, expect, it } from 'vitest';
import { classify, formats } from '../../src/formats/index.js';
import type { NumberClass } from '../../src/formats/index.js';

describe.each([formats.bf16, formats.fp16, formats.e4m3, formats.e5m2, formats.e2m1])(
  'the classes of $name',
  (format) => {
    it('have the sizes that the field widths give, for either sign', () => {
      const sizes = new Map<string, number>();
      for (let bits = 0; bits < 2 ** format.storageBits; bits++) {
        const { class: kind, negative } = classify(format, bits);
        const key = `${negative ? '-' : '+'}${kind}`;
        sizes.set(key, (sizes.get(key) ?? 0) + 1);
      }
      const fractions = 2 ** (format.precision - 1);
      const fields = 2 ** format.exponentBits;
      const expected: Record<NumberClass, number> = {
        zero: 1,
        subnormal: fractions - 1,
        ...{
          ieee: { normal: (fields - 2) * fractions, infinite: 1, nan: fractions - 1 },
          fn: { normal: (fields - 1) * fractions - 1, infinite: 0, nan: 1 },
          finite: { normal: (fields - 1) * fractions, infinite: 0, nan: 0 },
        }[format.specials],
      };
      for (const [kind, size] of Object.entries(expected)) {
        expect(sizes.get(`+${kind}`) ?? 0, kind).toBe(size);
        expect(sizes.get(`-${kind}`) ?? 0, kind).toBe(size);
      }
    });
  },
);

it('classifies fp64 by bigint', () => {
  const { fp64 } = formats;
  const expected: [bigint, NumberClass, boolean][] = [
    [0n, 'zero', false],
    [1n << 63n, 'zero', true],
    [(1n << 52n) - 1n, 'subnormal', false],
    [1n << 52n, 'normal', false],
    [(1n << 63n) | (1n << 52n), 'normal', true],
    [0x7fefffffffffffffn, 'normal', false],
    [0xfff0000000000000n, 'infinite', true],
    [0xfff0000000000001n, 'nan', true],
    [0x7fffffffffffffffn, 'nan', false],
  ];
  for (const [bits, kind, negative] of expected) {
    expect(classify(fp64, bits)).toEqual({ class: kind, negative });
  }
});

it('classifies fp32 and, without its padding, tf32', () => {
  expect(classify(formats.fp32, 0x807fffff)).toEqual({ class: 'subnormal', negative: true });
  expect(classify(formats.fp32, 0x00001fff)).toEqual({ class: 'subnormal', negative: false });
  expect(classify(formats.tf32, 0x00001fff)).toEqual({ class: 'zero', negative: false });
  expect(classify(formats.tf32, 0xff801fff)).toEqual({ class: 'infinite', negative: true });
  expect(classify(formats.tf32, 0xffffe000)).toEqual({ class: 'nan', negative: true });
});
