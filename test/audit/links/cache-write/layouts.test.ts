import { describe, expect, it } from 'vitest';
import {
  bitOf,
  checkPlaces,
  factorLayouts,
  fieldOf,
  numberLayouts,
} from '../../../../src/problem/index.js';
import { addresses } from './plain-layouts.js';

const blocks = 3;
const cases = [
  ...['nhd', 'hnd', 'joined-nhd', 'joined-hnd', 'x-packed', 'transposed'].map(
    (name) => [name, numberLayouts[name as 'nhd'], 8, 2, 32] as const,
  ),
  ['128x4', factorLayouts['128x4'], 8, 2, 6] as const,
  ['128x4', factorLayouts['128x4'], 128, 3, 4] as const,
  ['tokens-of-4', factorLayouts['tokens-of-4'], 8, 2, 4] as const,
  ['tokens-of-4', factorLayouts['tokens-of-4'], 16, 1, 8] as const,
];

describe('layouts of caches as data', () => {
  it.for(cases)('%s equals its loops: %s', ([name, words, blockSize, heads, columns]) => {
    const sizes = { slots: blocks * blockSize, heads, columns, part: 1 };
    const letters = { B: blockSize, X: 8, G: columns / 4 };
    const field = fieldOf(
      words,
      sizes,
      { buffer: 'b', code: 'e4m3' },
      name === '128x4' ? {} : letters,
    );
    const plain = { blocks, blockSize, heads, columns, part: 1, packed: 8 };
    for (let slot = 0; slot < sizes.slots; slot++)
      for (let head = 0; head < heads; head++)
        for (let column = 0; column < columns; column++)
          expect(bitOf(field, slot, head, column)).toBe(
            8 * addresses[name](plain, slot, head, column),
          );
    checkPlaces(field);
  });

  it('counts bits of numbers of half a byte', () => {
    const sizes = { slots: 2, heads: 1, columns: 32, part: 0 };
    const field = fieldOf('slot head column', sizes, { buffer: 'b', code: 'e2m1' });
    expect(bitOf(field, 1, 0, 3)).toBe((32 + 3) * 4);
  });

  it("places the parts of DeepSeek's rows of 656 bytes", () => {
    const sizes = { slots: 4, heads: 1, columns: 4, part: 0 };
    const factors = fieldOf('slot column', sizes, {
      buffer: 'b',
      code: 'fp32',
      baseBytes: 512,
      firstAxisBytes: 656,
    });
    expect(bitOf(factors, 2, 0, 3)).toBe(8 * (2 * 656 + 512 + 12));
  });

  it('refuses a layout in which elements share a place, and words that are none', () => {
    const sizes = { slots: 16, heads: 2, columns: 8, part: 0 };
    const of = (words: string) => fieldOf(words, sizes, { buffer: 'b', code: 'e4m3' }, { B: 4 });
    expect(() => checkPlaces(of('slot/B head column'))).toThrow(/in one place; name every digit/);
    expect(() => of('slot heads column')).toThrow(/layout word 'heads' is none/);
    expect(() => of('slot/Y column')).toThrow(/Y is no positive whole number/);
    expect(() => of('slot%0 column')).toThrow(/0 is no positive whole number/);
  });
});
