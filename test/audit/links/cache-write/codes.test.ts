import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { codes, usualRounding, type CodeName } from '../../../../src/problem/index.js';
import { decodePlain, encodePlain } from './plain-codes.js';

const short: readonly CodeName[] = [
  'e4m3',
  'e5m2',
  'e2m1',
  'int8',
  'e4m3fnuz',
  'bf16',
  'fp16',
  'e8m0',
];

describe('codes of caches', () => {
  it.for(short)('%s has the numbers of its fields', (name) => {
    for (let code = 0; code < 2 ** codes[name].bits; code++)
      expect(codes[name].decode(code), String(code)).toEqual(
        name === 'e8m0' && code === 255 ? NaN : (infinities(name, code) ?? decodePlain(name, code)),
      );
  });

  it.for(['e4m3', 'e5m2', 'e2m1', 'int8', 'e4m3fnuz', 'bf16'] as const)(
    '%s rounds to nearest',
    (name) => {
      const top = codes[name].maximum;
      const near = fc
        .float({ noNaN: true, noDefaultInfinity: true })
        .map((x) => (Math.abs(x) > top ? x % top : x));
      fc.assert(
        fc.property(near, (x) => {
          const rounded = codes[name].round(x, usualRounding);
          expect(rounded === 0 ? 0 : rounded).toBe(decodePlain(name, encodePlain(name, x)) + 0);
        }),
      );
      // Every tie between neighbours.
      if (codes[name].bits === 8)
        for (let code = 0; code < 0x7e; code++) {
          const [a, b] = [decodePlain(name, code), decodePlain(name, code + 1)];
          if (!Number.isFinite(a) || !Number.isFinite(b)) continue;
          const middle = (a + b) / 2;
          expect(codes[name].round(middle, usualRounding)).toBe(
            decodePlain(name, encodePlain(name, middle)),
          );
        }
    },
  );

  it('saturates, or has what the format has beyond its largest number', () => {
    const special = { mode: 'nearest-even', overflow: 'special' } as const;
    expect(codes.e4m3.round(1e6, usualRounding)).toBe(448);
    expect(codes.e4m3.round(1e6, special)).toBeNaN();
    expect(codes.e5m2.round(-1e6, special)).toBe(-Infinity);
    expect(codes.e4m3fnuz.round(1e6, usualRounding)).toBe(240);
    expect(codes.e4m3fnuz.round(1e6, special)).toBeNaN();
    expect(codes.int8.round(200, usualRounding)).toBe(127);
    expect(codes.int8.round(200, special)).toBe(-56);
    expect(codes.int8.round(2.5, { mode: 'nearest-away', overflow: 'saturate' })).toBe(3);
    expect(codes.int8.round(2.5, usualRounding)).toBe(2);
  });
});

/** Infinities and NaN of e5m2, which the table of the test has no numbers for. */
function infinities(name: CodeName, code: number): number | null {
  if (name !== 'e5m2' || (code & 0x7f) < 0x7c) return null;
  if ((code & 0x7f) > 0x7c) return NaN;
  return code === 0x7c ? Infinity : -Infinity;
}
