import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anySet, emptySet, LabelSets } from '../../src/meaning/domains/index.js';

const labels = fc.oneof(fc.integer({ min: 0, max: 200 }), fc.integer({ min: 0, max: 2 ** 31 - 1 }));
const lists = fc.array(labels, { maxLength: 40 });
const sorted = (some: Iterable<number>) => [...new Set(some)].sort((x, y) => x - y);

describe('sets of labels', () => {
  it('are those of JavaScript, in unions, differences and sizes', () => {
    const sets = new LabelSets();
    fc.assert(
      fc.property(lists, lists, (xs, ys) => {
        const [x, y] = [sets.of(xs), sets.of(ys)];
        expect([...sets.labelsOf(x)]).toEqual(sorted(xs));
        expect(sets.sizeOf(x)).toBe(new Set(xs).size);
        expect([...sets.labelsOf(sets.union(x, y))]).toEqual(sorted([...xs, ...ys]));
        const rest = xs.filter((label) => !ys.includes(label));
        expect([...sets.labelsOf(sets.difference(x, y))]).toEqual(sorted(rest));
        expect(sets.difference(x, y)).toBe(sets.of(rest));
      }),
      { numRuns: 1000 },
    );
  });

  it('have one number however they are made, also beyond the first tables', () => {
    const sets = new LabelSets();
    const prefixes = Array.from({ length: 3000 }, (_, i) => i * 37);
    let set: number = emptySet;
    const made = prefixes.map((label) => (set = sets.union(sets.single(label), set)));
    expect(sets.of([...prefixes].reverse())).toBe(set);
    set = emptySet;
    expect(prefixes.map((label) => (set = sets.union(set, sets.single(label))))).toEqual(made);
  });

  it('are unknown together with an unknown one', () => {
    const sets = new LabelSets();
    const some = sets.of([1, 500]);
    expect(sets.union(some, anySet)).toBe(anySet);
    expect(sets.difference(anySet, some)).toBe(anySet);
    expect(sets.difference(some, anySet)).toBe(emptySet);
    expect(sets.sizeOf(anySet)).toBe(Infinity);
  });
});
