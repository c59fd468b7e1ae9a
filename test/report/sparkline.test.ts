import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { joinLargest, sparkline } from '../../src/report/layout/sparkline.js';

const blocks = ' ▁▂▃▄▅▆▇█';
const height = (character: string) => blocks.indexOf(character);
const value = fc.double({ min: 0, noNaN: true, noDefaultInfinity: true });
const values = fc.array(value, { minLength: 1, maxLength: 60 });

describe('a sparkline', () => {
  it('has a column for each value, higher for the higher, and full for the highest', () => {
    fc.assert(
      fc.property(values, (list) => {
        const heights = [...sparkline(list)].map(height);
        expect(heights).toHaveLength(list.length);
        const top = Math.max(...list);
        for (const [i, one] of list.entries()) {
          expect(heights[i] === 0).toBe(one === 0);
          if (one === top && top > 0) expect(heights[i]).toBe(8);
          // What is shown is within an eighth of the truth.
          if (top > 0 && top < 1e300 && one > 0)
            expect(heights[i] - (8 * one) / top).toBeLessThan(1.001);
          for (const [j, other] of list.entries())
            if (one < other) expect(heights[i]).toBeLessThanOrEqual(heights[j]);
        }
      }),
    );
  });

  it('leaves out what is no value, and marks what is not finite', () => {
    expect(sparkline([1, null, NaN, 0, Infinity, 0.001, 4])).toBe('▂ × ×▁█');
    expect(sparkline([])).toBe('');
    expect(sparkline([null, 0])).toBe('  ');
    expect(sparkline([1, 2, 3], 2)).toBe('▄██');
    // A block is all up to its height, not what is nearest to it.
    expect(sparkline([1, 1.1, 2, 2.01, 8])).toBe('▁▂▂▃█');
  });
});

describe('neighbours joined', () => {
  it('keep the largest of each group, and as much of all as fits', () => {
    fc.assert(
      fc.property(values, fc.integer({ min: 1, max: 40 }), (list, most) => {
        const { values: joined, each } = joinLargest(list, most);
        expect(joined.length).toBeLessThanOrEqual(most);
        expect(joined.length).toBe(Math.ceil(list.length / each));
        for (const [i, one] of list.entries())
          expect(joined[Math.floor(i / each)]!).toBeGreaterThanOrEqual(one);
        for (const one of joined) expect(list).toContain(one);
      }),
    );
  });

  it('are nothing where all are, and not finite where one is', () => {
    expect(joinLargest([null, null, 1, null, 2, NaN], 3)).toEqual({
      values: [null, 1, NaN],
      each: 2,
    });
  });
});
