import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createBusyShare } from '../../../src/machine/trace/chrome-trace.js';

/** Pauses and pieces of work by turns. */
const work = fc.array(
  fc.record({ pause: fc.nat({ max: 3000 }), clocks: fc.integer({ min: 1, max: 3000 }) }),
);

it('loses no clock, and no share is above 1', () => {
  fc.assert(
    fc.property(work, fc.integer({ min: 50, max: 1000 }), (pieces, window) => {
      const share = createBusyShare(window, 1);
      let now = 0;
      for (const { pause, clocks } of pieces) {
        share.add(now + pause, now + pause + clocks);
        now += pause + clocks;
      }
      const windows = share.windows();
      const total = windows.reduce((sum, { share }) => sum + share * window, 0);
      expect(total).toBeCloseTo(
        pieces.reduce((sum, { clocks }) => sum + clocks, 0),
        6,
      );
      expect(Math.max(0, ...windows.map(({ share }) => share))).toBeLessThanOrEqual(1 + 1e-12);
      expect(windows.map(({ start }) => start)).toEqual(windows.map((_, i) => i * window));
    }),
  );
});

it('is the share of all units', () => {
  const share = createBusyShare(100, 4);
  share.add(50, 150);
  expect(share.windows()).toEqual([
    { start: 0, share: 0.125 },
    { start: 100, share: 0.125 },
  ]);
});
