import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  alignedDown,
  alignedRange,
  alignedSizes,
  alignedUp,
  drawSize,
  fewestElements,
  fullSizeRange,
  sizeNames,
  withinElements,
  type SizeChoices,
  type SizeName,
  type Sizes,
} from '../../../properties/problems/sizes.js';
import { randomValues } from '../../../properties/problems/values.js';
import { RequestError } from '../../../src/request-error.js';

/** What sizes are where nothing else is said, and the least they may be. */
const usual: Readonly<Record<SizeName, readonly [min: number, max: number, least: number]>> = {
  batch: [1, 2, 1],
  kvHeads: [1, 2, 1],
  groupSize: [1, 3, 1],
  queries: [1, 129, 0],
  keys: [1, 257, 0],
  qkDim: [1, 32, 1],
  vDim: [1, 32, 1],
};

const elements = ({ batch, kvHeads, groupSize, queries, keys, qkDim, vDim }: Sizes) =>
  batch * kvHeads * groupSize * queries * keys * Math.max(qkDim, vDim);

describe('the range of a size', () => {
  it.each(sizeNames)('%s has its defaults, which one bound beyond them moves along', (name) => {
    const [min, max, least] = usual[name];
    expect(fullSizeRange(name)).toEqual({ min, max });
    expect(fullSizeRange(name, { min: max })).toEqual({ min: max, max });
    expect(fullSizeRange(name, { min: max + 3 })).toEqual({ min: max + 3, max: max + 3 });
    expect(fullSizeRange(name, { max: max + 3 })).toEqual({ min, max: max + 3 });
    expect(fullSizeRange(name, { max: least })).toEqual({ min: least, max: least });
    expect(fullSizeRange(name, { min: least, max: least })).toEqual({ min: least, max: least });
    for (const wrong of [
      { min: least - 1 },
      { max: least - 1 },
      { min: least + 0.5 },
      { max: Infinity },
      { min: least + 2, max: least + 1 },
    ])
      expect(() => fullSizeRange(name, wrong)).toThrow(RequestError);
  });
});

describe('a drawn size', () => {
  const edges = [1, 63, 64, 65, 127, 128, 129, 255, 256, 257];
  /** What is drawn where the numbers asked for are given, with the ranges that they were asked from. */
  function drawn(range: { min: number; max: number }, ...numbers: number[]) {
    const asked: (readonly [number, number])[] = [];
    const size = drawSize(range, (min, max) => {
      asked.push([min, max]);
      return numbers[asked.length - 1];
    });
    return { size, asked };
  }

  it('lies near the least half of the time, at a tile edge a quarter, else anywhere', () => {
    const range = { min: 60, max: 200 };
    for (const choice of [2, 3])
      expect(drawn(range, choice, 61)).toEqual({
        size: 61,
        asked: [
          [0, 3],
          [60, 67],
        ],
      });
    expect(drawn(range, 0, 150)).toEqual({
      size: 150,
      asked: [
        [0, 3],
        [60, 200],
      ],
    });
    const within = edges.filter((edge) => edge >= 60 && edge <= 200);
    within.forEach((edge, index) =>
      expect(drawn(range, 1, index)).toEqual({
        size: edge,
        asked: [
          [0, 3],
          [0, within.length - 1],
        ],
      }),
    );
    expect(drawn({ min: 63, max: 65 }, 3, 64).asked[1]).toEqual([63, 65]);
    expect(drawn({ min: 64, max: 64 }, 1, 0).size).toBe(64);
    // No tile edge lies there.
    expect(drawn({ min: 2, max: 62 }, 1, 33)).toEqual({
      size: 33,
      asked: [
        [0, 3],
        [2, 62],
      ],
    });
  });
});

describe('multiples', () => {
  it('are the nearest above, below and within', () => {
    fc.assert(
      fc.property(
        fc.nat({ max: 99 }),
        fc.nat({ max: 99 }),
        fc.integer({ min: 1, max: 12 }),
        (a, b, multiple) => {
          const all = Array.from({ length: 120 }, (_, i) => i * multiple);
          expect(alignedUp(a, multiple)).toBe(all.find((x) => x >= a));
          expect(alignedDown(a, multiple)).toBe(all.filter((x) => x <= a).at(-1));
          const within = all.filter((x) => x >= Math.min(a, b) && x <= Math.max(a, b));
          const { min, max } = alignedRange({ min: Math.min(a, b), max: Math.max(a, b) }, multiple);
          if (within.length === 0) expect(min).toBeGreaterThan(max);
          else expect([min, max]).toEqual([within[0], within.at(-1)]);
        },
      ),
    );
    expect([alignedUp(7), alignedDown(7), alignedRange({ min: 3, max: 7 })]).toEqual([
      7,
      7,
      { min: 3, max: 7 },
    ]);
  });

  const sizesOf = (size: number): Sizes =>
    Object.fromEntries(sizeNames.map((name) => [name, size])) as Sizes;
  const ranges = Object.fromEntries(
    sizeNames.map((name) => [name, { min: 4, max: 24 }]),
  ) as SizeChoices['sizes'];

  it('are what sizes are moved to, within their ranges, and groups to listed ones', () => {
    const choices: SizeChoices = {
      sizes: ranges,
      multiples: { keys: 4, vDim: 8 },
      dims: null,
      groupSizes: null,
    };
    const moved = (size: number, more: Partial<SizeChoices> = {}) =>
      alignedSizes(sizesOf(size), { ...choices, ...more });
    expect(moved(13)).toEqual({ ...sizesOf(13), keys: 12, vDim: 16 });
    expect(moved(2)).toEqual({ ...sizesOf(2), keys: 4, vDim: 4 });
    expect(moved(31)).toEqual({ ...sizesOf(31), keys: 24, vDim: 24 });
    const groupSizes = [3, 6, 12];
    const groups = [1, 3, 5, 6, 11, 12, 40].map((size) => moved(size, { groupSizes }).groupSize);
    expect(groups).toEqual([3, 3, 3, 6, 6, 12, 12]);
  });

  it('leave the fewest elements, of listed dimensions the least', () => {
    const choices = { sizes: ranges, multiples: {}, dims: null, groupSizes: null };
    expect(fewestElements(choices)).toBe(4 ** 6);
    expect(fewestElements({ ...choices, dims: [64, 128] })).toBe(4 ** 5 * 64);
    const wide = { ...ranges, vDim: { min: 9, max: 9 } };
    expect(fewestElements({ ...choices, sizes: wide })).toBe(4 ** 5 * 9);
  });

  it('give way until they are few enough, batches first and keys last, none more than it must', () => {
    const order: readonly SizeName[] = [
      'batch',
      'kvHeads',
      'groupSize',
      'queries',
      'vDim',
      'qkDim',
      'keys',
    ];
    const least = Object.fromEntries(
      sizeNames.map((name) => [name, { min: 1, max: 40 }]),
    ) as SizeChoices['sizes'];
    fc.assert(
      fc.property(
        fc.tuple(...sizeNames.map(() => fc.integer({ min: 1, max: 20 }))),
        fc.integer({ min: 1, max: 2 ** 16 }),
        fc.nat(),
        fc.option(fc.subarray([2, 5, 16], { minLength: 1 }), { nil: null }),
        (numbers, most, seed, dims) => {
          const given = Object.fromEntries(sizeNames.map((name, i) => [name, numbers[i]])) as Sizes;
          const before =
            dims === null
              ? given
              : { ...given, qkDim: dims[dims.length - 1], vDim: dims[dims.length - 1] };
          const random = randomValues(seed);
          const choice = { sizes: least, multiples: {}, dims, groupSizes: null };
          const after = withinElements(before, choice, most, random.integer);
          if (elements(before) <= most) expect(after).toEqual(before);
          for (const name of sizeNames) expect(after[name]).toBeLessThanOrEqual(before[name]);
          const leastDim = dims === null ? 1 : dims[0];
          expect(elements(after)).toBeLessThanOrEqual(Math.max(most, leastDim));
          if (dims !== null) expect(dims).toContain(after.qkDim);
          // None gives way while those before it are enough.
          order.forEach((name, place) => {
            if (after[name] === before[name] || (dims !== null && name === 'qkDim')) return;
            const earlier = order.slice(0, place).map((other) => [other, after[other]] as const);
            expect(elements({ ...before, ...Object.fromEntries(earlier) })).toBeGreaterThan(most);
          });
        },
      ),
    );
  });

  it('give way to the most that fits, and stay at their least', () => {
    const choices = { sizes: ranges, multiples: {}, dims: null, groupSizes: null };
    const asked: (readonly [number, number])[] = [];
    const largest = (min: number, max: number) => {
      asked.push([min, max]);
      return max === 3 && min === 0 ? 0 : max;
    };
    // 8 batches are 8·4^6 elements, 6·4^6 are allowed: 6 are left.
    const sizes = { ...sizesOf(4), batch: 8 };
    expect(withinElements(sizes, choices, 6 * 4 ** 5, largest)).toEqual({
      ...sizesOf(4),
      batch: 6,
    });
    expect(asked).toEqual([
      [0, 3],
      [4, 6],
    ]);
    expect(withinElements(sizes, choices, 6 * 4 ** 5 - 1, largest).batch).toBe(5);
    expect(withinElements(sizes, choices, 1, largest)).toEqual(sizesOf(4));
    // Of two dimensions that differ both are cut.
    const wide = { ...sizesOf(4), vDim: 20, qkDim: 12 };
    expect(withinElements(wide, choices, 10 * 4 ** 5, largest)).toEqual({
      ...sizesOf(4),
      vDim: 10,
      qkDim: 10,
    });
  });
});
