import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  otherRules,
  requestedRule,
  type SplitRanges,
} from '../../../src/audit/splits/split-rules.js';

const sizes = fc.array(fc.integer({ min: 0, max: 300 }), { minLength: 1, maxLength: 3 });
const counts = fc.integer({ min: 1, max: 6 });

/** The part of each key, by sequence; a key of no part, or of two, is an error. */
function partsOf(ranges: SplitRanges, keys: readonly number[]): number[][] {
  return keys.map((count, sequence) =>
    Array.from({ length: count }, (_, key) => {
      const parts = [...ranges.keys()].filter((split) => {
        const { begin, end } = ranges[split][sequence];
        return begin <= key && key < end;
      });
      if (parts.length !== 1) throw new Error(`key ${key} is in the parts ${parts.join(', ')}`);
      return parts[0];
    }),
  );
}

/** The part of a key by the definition of a rule. */
const rules: Readonly<
  Record<string, (key: number, keys: number, splits: number, block: number) => number>
> = {
  equal: (key, keys, splits) => Math.floor(key / Math.ceil(keys / splits)),
  blocks: (key, keys, splits, block) =>
    Math.floor(Math.floor(key / block) / Math.ceil(Math.ceil(keys / block) / splits)),
  // The last part that begins at or before the key.
  even: (key, keys, splits) => {
    const begins = Array.from({ length: splits }, (_, s) => Math.floor((s * keys) / splits));
    return begins.filter((begin) => begin <= key).length - 1;
  },
};

describe('the keys of a part', () => {
  it('are every key once, by any rule', () => {
    fc.assert(
      fc.property(sizes, counts, fc.constantFrom(undefined, 16, 64), (keys, splits, block) => {
        const request = { keys, splits, block };
        const asked = requestedRule(request);
        const wanted = (name: string, size = 0) =>
          keys.map((count) =>
            Array.from({ length: count }, (_, key) => rules[name](key, count, splits, size)),
          );
        const own = block === undefined ? wanted('equal') : wanted('blocks', block);
        expect(partsOf(asked.ranges, keys)).toEqual(own);
        expect(asked.ranges.length).toBe(splits);
        const others = otherRules(request, asked);
        for (const { words, ranges } of others) {
          const size = /^blocks of (\d+) keys/.exec(words)?.[1];
          const name = size !== undefined ? 'blocks' : words === 'equal parts' ? 'equal' : 'even';
          expect(partsOf(ranges, keys)).toEqual(wanted(name, Number(size)));
        }
        // No two have the same ranges, and none that is known is left out.
        const seen = [asked, ...others].map(({ ranges }) => JSON.stringify(ranges));
        expect(new Set(seen).size).toBe(seen.length);
        const tried = [
          ...[16, 32, 64, 128, 256].map((size) => wanted('blocks', size)),
          wanted('equal'),
          wanted('even'),
        ];
        const all = [asked, ...others].map(({ ranges }) => JSON.stringify(partsOf(ranges, keys)));
        for (const one of tried) expect(all).toContain(JSON.stringify(one));
      }),
      { numRuns: 20 },
    );
  });

  it('lie between boundaries that are given, of which a short sequence has less', () => {
    const cuts = fc
      .array(fc.nat(60), { minLength: 1, maxLength: 4 })
      .map((some) => [...some].sort((a, b) => a - b));
    fc.assert(
      fc.property(cuts, fc.array(fc.nat(50), { minLength: 1, maxLength: 3 }), (inner, keys) => {
        const boundaries = [0, ...inner, 60];
        const splits = boundaries.length - 1;
        const { words, ranges } = requestedRule({ keys, splits, boundaries });
        expect(words).toBe(`parts at the keys ${boundaries.join(', ')}`);
        partsOf(ranges, keys).forEach((parts) =>
          expect(
            parts.every((split, key) => boundaries[split] <= key && key < boundaries[split + 1]),
          ).toBe(true),
        );
        expect(ranges.flat().every(({ begin, end }) => begin <= end)).toBe(true);
      }),
    );
  });

  it.each([
    [[0, 8, 4, 20], 'ascending'],
    [[1, 4, 8, 20], 'from 0'],
    [[0, 4, 20], 'give 4'],
    [[0, 4, 8, 19], 'but there are 20 keys'],
  ])('are not those between %j', (boundaries, words) => {
    expect(() => requestedRule({ keys: [7, 20], splits: 3, boundaries })).toThrow(words);
    expect(() =>
      requestedRule({ keys: [7, 20], splits: 3, boundaries: [0, 4, 4, 20] }),
    ).not.toThrow();
  });
});
