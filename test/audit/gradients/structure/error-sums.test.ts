import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  ErrorSum,
  type SummedErrors,
} from '../../../../src/audit/gradients/structure/error-sum.js';
import {
  noRoundings,
  type OutputRoundings,
} from '../../../../src/audit/gradients/structure/output-roundings.js';
import { drawFrom } from '../definitions/random-pairs.js';

/** What errors of some rows and a pattern are drawn by. */
const drawns = fc.record({
  seed: fc.nat(1e6),
  rows: fc.integer({ min: 1, max: 12 }),
  columns: fc.integer({ min: 1, max: 3 }),
  isApart: fc.boolean(),
  /** Rows of a unit, null for one alone, in turns. */
  units: fc.array(fc.constantFrom(null, null, 7, 9), { minLength: 1, maxLength: 4 }),
  /** The size of what follows from the values, beside deviations of about 1. */
  following: fc.constantFrom(0.1, 1, 10),
  deviations: fc.constantFrom(0.5, 3, 8),
  common: fc.constantFrom(0, 0.5, 5),
});

type Drawn = typeof drawns extends fc.Arbitrary<infer T> ? T : never;

function drawSum({ seed, rows, columns, isApart, following }: Drawn) {
  const { between, flips, count } = drawFrom(seed);
  const numbers = (make: () => number) => Float64Array.from({ length: rows * columns }, make);
  const signed = (size: number) => numbers(() => size * between(-1, 1));
  const deviation = numbers(() => between(0.5, 1));
  const errors: SummedErrors = {
    systematic: numbers(() => between(0, 0.2)),
    deviation,
    operands: signed(following),
    // Now and then next to nothing or all is apart, or more than there is.
    apart: isApart ? deviation.map((x) => x * [0.01, 0.5, 1.25][count(3)]) : null,
    roundings: {
      expected: signed(1),
      jump: numbers(() => (flips() ? 0 : following * between(-1, 1))),
      turn: numbers(() => [-1, 1, 0, 1 / 32, between(-1, 1), between(-0.2, 0.2)][count(6)]),
      blurred: signed(following),
      following: [signed(following), signed(following)],
      unknown: deviation.map((x) => x * between(0.05, 0.95)),
    },
  };
  return { errors, pattern: signed(2), projected: signed(1), values: signed(1) };
}

/** The variance of a sum along a pattern, of some deviations, by who errs together. */
function varianceOf(
  { rows, columns, units, common }: Drawn,
  { deviation, apart }: SummedErrors,
  pattern: Float64Array,
  of: Float64Array,
): number {
  const ofUnits = new Map<number, number>();
  let sum = common ** 2;
  for (let row = 0; row < rows; row++) {
    const places = Array.from({ length: columns }, (_, c) => row * columns + c);
    const total = (numbers: (at: number) => number) =>
      places.reduce((all, at) => all + numbers(at), 0);
    const unit = units[row % units.length];
    if (unit !== null) {
      const whole = total((at) => of[at] * Math.abs(pattern[at]));
      ofUnits.set(unit, (ofUnits.get(unit) ?? 0) + whole);
      continue;
    }
    // What elements of the row share is all but what is apart; of a part of the errors, no more than that part.
    const shared = (at: number) =>
      apart === null
        ? of[at]
        : Math.min(of[at], Math.sqrt(Math.max(0, deviation[at] ** 2 - apart[at] ** 2)));
    const isAll = of === deviation;
    const own = (at: number) =>
      apart === null ? 0 : isAll ? apart[at] ** 2 : of[at] ** 2 - shared(at) ** 2;
    sum += total((at) => shared(at) * Math.abs(pattern[at])) ** 2;
    sum += total((at) => own(at) * pattern[at] ** 2);
  }
  return [...ofUnits.values()].reduce((all, x) => all + x ** 2, sum);
}

/** The largest sum of jumps of one sign, of those whose turn is between 0 and a share of the errors, in steps of a 32nd. */
function largestJumps({ roundings }: SummedErrors, pattern: Float64Array, sign: number): number {
  const shares = Array.from({ length: 65 }, (_, k) => k - 32);
  const sums = shares.map((share) =>
    pattern.reduce((sum, c, at) => {
      const turn = Math.min(Math.floor(32 * roundings.turn[at]), 31);
      const isPast = share > 0 ? turn >= 0 && turn < share : turn < 0 && turn >= share;
      return isPast ? sum + roundings.jump[at] * c : sum;
    }, 0),
  );
  return Math.max(0, ...sums.map((x) => sign * x));
}

/** The sum of one error of deviation 1, with these roundings beside unknown ones. */
function sumOfOne(error: number, roundings: Partial<OutputRoundings>): ErrorSum {
  const deviation = Float64Array.of(1);
  const none = Float64Array.of(0);
  const sum = new ErrorSum({
    systematic: none,
    deviation,
    apart: null,
    operands: none,
    roundings: { ...noRoundings(deviation), ...roundings },
  });
  sum.add(0, error, 1);
  sum.endRow(null);
  return sum;
}

describe('a sum of errors', () => {
  it('has the limits of Theorem 24, whatever rows and elements err together', () => {
    const reached = { chance: 0, part: 0, whole: 0 };
    fc.assert(
      fc.property(drawns, (drawn) => {
        const { rows, columns, units, deviations: z, common } = drawn;
        const { errors, pattern, projected, values } = drawSum(drawn);
        const sum = new ErrorSum(errors);
        for (let row = 0; row < rows; row++) {
          for (let at = row * columns; at < (row + 1) * columns; at++)
            sum.add(at, projected[at], pattern[at], values[at]);
          sum.endRow(units[row % units.length]);
        }
        const along = (of: Float64Array, weigh = (c: number) => c) =>
          pattern.reduce((all, c, at) => all + of[at] * weigh(c), 0);
        const isNear = (found: number, wanted: number) =>
          Math.abs(found - wanted) <= 1e-9 * (1 + Math.abs(wanted));
        expect(isNear(sum.norm, along(values))).toBe(true);
        expect(
          isNear(
            sum.signed,
            projected.reduce((all, x) => all + x, 0),
          ),
        ).toBe(true);
        expect(isNear(sum.expected, along(errors.roundings.expected))).toBe(true);

        const systematic = along(errors.systematic, Math.abs);
        const all = varianceOf(drawn, errors, pattern, errors.deviation);
        const unknown = varianceOf(drawn, errors, pattern, errors.roundings.unknown);
        const independent = systematic + z * Math.sqrt(all);
        expect(isNear(sum.ofIndependent(z, common), independent)).toBe(true);
        const { jump, blurred, following } = errors.roundings;
        const jumpSquares = pattern.reduce((most, c, at) => most + (jump[at] * c) ** 2, 0);
        for (const sign of [1, -1]) {
          const parts = [errors.operands, blurred].map((of) => Math.max(0, sign * along(of)));
          const P = Math.max(parts[0] + parts[1], ...following.map((of) => sign * along(of)));
          const jumps = largestJumps(errors, pattern, sign);
          const found = sum.ofFollowing(z, common, sign);
          if (P + jumps <= 4 * Math.sqrt(all - unknown + jumpSquares)) {
            reached.chance++;
            expect(isNear(found, independent)).toBe(true);
            continue;
          }
          const left = (a: number) => a * P + z * Math.sqrt(all - a * a * (all - unknown));
          const most = Math.max(...Array.from({ length: 513 }, (_, k) => left(k / 512)));
          reached[most > left(1) ? 'part' : 'whole']++;
          const rest = found - systematic - jumps;
          // The largest is no less than any, and next to one of these: its slope there is 0.
          expect(rest).toBeGreaterThanOrEqual(most * (1 - 1e-9));
          expect(rest).toBeLessThanOrEqual(most * (1 + 1e-4));
        }
      }),
      { numRuns: 300 },
    );
    expect(Object.values(reached).every((count) => count > 0)).toBe(true);
  });

  it.each([
    ['within its limit', 2, { statistic: 2, threshold: 2 }],
    ['beyond it', 2.5, { statistic: 1.5, threshold: 2 }],
    ['beyond it on the other side', -2.5, { statistic: -3.5, threshold: 2 }],
    ['unknown', NaN, { statistic: NaN, threshold: 2 }],
  ])('is judged without what is expected only where it is beyond: %s', (_, signed, wanted) => {
    const sum = sumOfOne(signed, { expected: Float64Array.of(1) });
    expect(sum.judge(2, 0)).toEqual(wanted);
  });

  it.each([1, -1])('is held against what follows from values on its own side: %d', (side) => {
    const sum = sumOfOne(side * 9, { blurred: Float64Array.of(10), unknown: Float64Array.of(0) });
    // All of it is a rounding that follows from the value: √(z² + P²) of that sign, z of the other.
    const threshold = side > 0 ? Math.sqrt(2 ** 2 + 10 ** 2) : 2;
    expect(sum.judge(2, 0)).toEqual({ statistic: side * 9, threshold });
  });
});
