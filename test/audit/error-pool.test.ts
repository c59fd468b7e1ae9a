import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ErrorPool } from '../../src/audit/structure/error-pool.js';

/** What `ErrorPool.tolerance` promises, with a map for memory. */
function toleranceOf(errors: readonly (readonly [group: number, x: number])[], deviations: number) {
  const groups = new Map<number, { sum: number; square: number }>();
  for (const [group, x] of errors) {
    const { sum, square } = groups.get(group) ?? { sum: 0, square: 0 };
    groups.set(group, { sum: sum + x, square: square + x * x });
  }
  const all = [...groups.values()];
  const total = (of: (group: (typeof all)[number]) => number) =>
    all.reduce((sum, group) => sum + of(group), 0);
  const root3 = Math.sqrt(3);
  return Math.min(
    (deviations / root3) * Math.sqrt(total(({ sum, square }) => Math.max(square, sum * sum))),
    total(({ sum }) => Math.abs(sum)) +
      (deviations / root3) * Math.sqrt(total(({ square }) => square)),
    errors.reduce((sum, [, x]) => sum + Math.abs(x), 0),
  );
}

const errors = fc.array(
  fc.tuple(
    fc.oneof(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 0, max: 499_711 })),
    fc.integer({ min: -64, max: 64 }),
  ),
  { maxLength: 300 },
);

describe('a pool of errors', () => {
  it('keeps groups apart, however many there are, and forgets them', () => {
    fc.assert(
      fc.property(errors, errors, fc.integer({ min: -3, max: 3 }), (first, second, factor) => {
        const pool = new ErrorPool();
        for (const [group, x] of second) pool.addAll(group, Float64Array.of(x));
        pool.clear();
        for (const [group, x] of first) pool.addAll(group, Float64Array.of(x));
        expect(pool.tolerance(6)).toBeCloseTo(toleranceOf(first, 6), 9);
        const other = new ErrorPool();
        for (const [group, x] of second) other.addAll(group, Float64Array.of(x));
        pool.merge(other.state(), [factor]);
        const both = [...first, ...second.map(([group, x]) => [group, factor * x] as const)];
        expect(pool.tolerance(6)).toBeCloseTo(toleranceOf(both, 6), 9);
      }),
    );
  });
});
