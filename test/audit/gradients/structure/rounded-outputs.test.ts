import { describe, expect, it } from 'vitest';
import {
  noRoundings,
  outputRoundings,
} from '../../../../src/audit/gradients/structure/output-roundings.js';

type Bound = Parameters<typeof outputRoundings>[1];

/** The roundings to bf16 of one value with bounds of its errors. */
function roundingsOf(x: number, bound: Partial<Record<keyof Bound, number>>, byOthers = 0) {
  const { deviation = 1, known = 0, reach = 0, operands = 0 } = bound;
  const [of, ...others] = [deviation, known, reach, operands, byOthers].map((number) =>
    Float64Array.of(number),
  );
  const exact = { values: Float64Array.of(x) };
  const { following, ...found } = outputRoundings(
    { exact, format: 'bf16' } as Parameters<typeof outputRoundings>[0],
    {
      deviation: of,
      known: others[0],
      reach: others[1],
      operands: others[2],
      byOthers: [others[3]],
    },
  );
  const numbers = Object.entries(found).map(([name, [number]]) => [name, number] as const);
  return {
    ...(Object.fromEntries(numbers) as Record<keyof typeof found, number>),
    following: following.map(([number]) => number),
  };
}

// Of bf16 an ulp from 1 on is 2^-7.
const [ulp, quarter] = [2 ** -7, 2 ** -9];

describe('the rounding of a value between two numbers', () => {
  it.each([
    { reach: quarter, jump: 0, turn: 0 },
    { reach: quarter * (1 + 2 ** -20), jump: ulp, turn: 1 / (1 + 2 ** -20) },
    { reach: 2 * quarter, jump: ulp, turn: 0.5 },
  ])('changes where errors reach past the midpoint, not to it: $reach', ({ reach, jump, turn }) => {
    const below = roundingsOf(1 + quarter, { reach });
    expect(below).toMatchObject({ expected: -quarter, blurred: 0, jump, turn, unknown: 1 });
    const above = roundingsOf(1 + ulp - quarter, { reach });
    expect(above.expected).toBe(quarter);
    expect([above.jump, above.turn]).toEqual([0 - jump, 0 - turn]);
    const negative = roundingsOf(-1 - quarter, { reach });
    expect([negative.jump, negative.turn]).toEqual([0 - jump, 0 - turn]);
  });

  it('is blurred where errors have no reach, with operands by each of their factors', () => {
    // The second factor takes it past the midpoint.
    const found = roundingsOf(1 + quarter, { operands: quarter / 2 }, 1.5 * quarter);
    expect(found).toMatchObject({ expected: 0, blurred: -quarter, jump: 0, turn: 0 });
    expect(found.following).toEqual([quarter / 2 - 1.5 * quarter, 1.5 * quarter + 1.5 * quarter]);
    expect(found.unknown).toBe(Math.sqrt(1 - (quarter / 2) ** 2 - quarter ** 2));
    // No rounding is more than what is uniform in an ulp.
    const near = roundingsOf(1 + ulp / 2 - 2 ** -20, {});
    expect(near.unknown).toBeCloseTo(Math.sqrt(1 - (ulp / 2) ** 2 / 3), 14);
  });

  it('leaves no less than nothing unknown', () => {
    const tiny = 2 ** -30;
    for (const bound of [{ known: 1 }, { reach: 1, operands: 1 }, { operands: 1 }, {}])
      expect(roundingsOf(1 + quarter, { deviation: tiny, ...bound }).unknown).toBe(0);
  });
});

describe('no rounding', () => {
  it.each([
    ['of a number of the format', 1.5],
    ['of an infinity', Infinity],
    ['of a NaN', NaN],
    // A correct kernel overflows; that is no error to sum up.
    ['that overflows', Number.MAX_VALUE],
  ])('is expected %s', (_, x) => {
    for (const bound of [{ known: 0.5 }, { reach: 0.5 }, {}]) {
      const found = roundingsOf(x, bound);
      expect([found.expected, found.blurred].map(Math.abs)).toEqual([0, 0]);
      expect([found.jump, found.turn].map(Math.abs)).toEqual([0, 0]);
      expect(found.following).toEqual([0, 0]);
      expect(found.unknown).toBe(Math.sqrt(1 - (bound.known ?? 0) ** 2));
    }
  });

  it('is expected where none is looked for', () => {
    const deviation = Float64Array.of(1, 2);
    const zeros = new Float64Array(2);
    const none = { expected: zeros, jump: zeros, turn: zeros, blurred: zeros };
    expect(noRoundings(deviation)).toEqual({ ...none, following: [], unknown: deviation });
  });
});
