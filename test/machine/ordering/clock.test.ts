import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  clockContains,
  clockIncludes,
  clockTime,
  copyClock,
  createClock,
  includeInClock,
  joinClock,
  resetClock,
  tickClock,
  type Clock,
} from '../../../src/machine/ordering/index.js';

const components = fc.array(fc.nat(20), { maxLength: 40, size: 'max' });

function clockOf(times: readonly number[]): Clock {
  const clock = createClock();
  times.forEach((time, chain) => includeInClock(clock, chain, time));
  return clock;
}

const timesOf = (clock: Clock) => Array.from({ length: 50 }, (_, chain) => clockTime(clock, chain));

describe('clocks', () => {
  it('join to the maximum of each component, whatever their lengths', () => {
    fc.assert(
      fc.property(components, components, (a, b) => {
        const joined = clockOf(a);
        const other = clockOf(b);
        joinClock(joined, other);
        expect(timesOf(joined)).toEqual(
          Array.from({ length: 50 }, (_, chain) => Math.max(a[chain] ?? 0, b[chain] ?? 0)),
        );
        expect(timesOf(other)).toEqual(timesOf(clockOf(b)));
        expect(clockContains(joined, other) && clockContains(joined, clockOf(a))).toBe(true);
      }),
    );
  });

  it('contain one another exactly if a join adds nothing', () => {
    fc.assert(
      fc.property(components, components, (a, b) => {
        const joined = clockOf(a);
        joinClock(joined, clockOf(b));
        expect(clockContains(clockOf(a), clockOf(b))).toBe(
          timesOf(joined).join() === timesOf(clockOf(a)).join(),
        );
      }),
    );
  });

  it('are equal to their copies, and independent', () => {
    fc.assert(
      fc.property(components, fc.nat(45), (times, chain) => {
        const from = clockOf(times);
        const copy = copyClock(from);
        const before = timesOf(from);
        expect(timesOf(copy)).toEqual(before);
        expect(tickClock(copy, chain)).toBe(before[chain] + 1);
        expect(timesOf(from)).toEqual(before);
      }),
    );
  });

  it('are empty after a reset, also where they grow again', () => {
    const clock = clockOf([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    resetClock(clock);
    includeInClock(clock, 9, 1);
    expect(timesOf(clock)).toEqual(timesOf(clockOf([0, 0, 0, 0, 0, 0, 0, 0, 0, 1])));
  });

  it('include all times of a chain up to its component, and 0 of every chain', () => {
    const clock = clockOf([0, 3]);
    const included = [0, 1, 3, 4].map((time) => clockIncludes(clock, 1, time));
    expect(included).toEqual([true, true, true, false]);
    expect(clockIncludes(clock, 1000, 0)).toBe(true);
    expect(clockIncludes(clock, 1000, 1)).toBe(false);
  });
});
