import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formats, nextDown, nextUp, round, ulp } from '../../src/formats/index.js';
import type { NumberFormat, RoundingMode } from '../../src/formats/index.js';

const modes: RoundingMode[] = ['nearest-even', 'toward-zero', 'down', 'up'];
const mode = fc.constantFrom(...modes);
const options = fc.record({
  rounding: mode,
  overflow: fc.constantFrom('overflow' as const, 'saturate' as const),
  flushSubnormals: fc.boolean(),
});

/** Doubles of all kinds, half of them within a few binades of the format's range. */
function doubles(format: NumberFormat): fc.Arbitrary<number> {
  const scaled = fc
    .tuple(
      fc.double({ min: 1, max: 2, noNaN: true }),
      fc.integer({
        min: Math.max(format.minExponent - format.precision - 1, -1074),
        max: Math.min(format.maxExponent + 1, 1022),
      }),
      fc.boolean(),
    )
    .map(([significand, exponent, negative]) => (negative ? -1 : 1) * significand * 2 ** exponent);
  return fc.oneof(fc.double({ noNaN: true }), scaled);
}

describe.each(Object.values(formats))('rounding to $name', (format) => {
  const value = doubles(format);
  const inRange = value.filter((x) => Math.abs(x) <= format.maxFinite);

  it('is idempotent', () => {
    fc.assert(
      fc.property(value, options, (x, chosen) => {
        const once = round(format, x, chosen);
        expect(round(format, once, chosen)).toBe(once);
      }),
    );
  });

  it('is monotone', () => {
    fc.assert(
      fc.property(value, value, options, (x, y, chosen) => {
        const [low, high] = [Math.min(x, y), Math.max(x, y)].map((z) => round(format, z, chosen));
        if (!Number.isNaN(low) && !Number.isNaN(high)) expect(low).toBeLessThanOrEqual(high);
      }),
    );
  });

  it('to nearest is within half an ulp', () => {
    fc.assert(
      fc.property(inRange, (x) => {
        expect(Math.abs(round(format, x) - x)).toBeLessThanOrEqual(ulp(format, x) / 2);
      }),
    );
  });

  it('down and up bracket the value by adjacent numbers, between which the other modes choose', () => {
    fc.assert(
      fc.property(inRange, (x) => {
        const [nearest, truncated, down, up] = modes.map((rounding) =>
          round(format, x, { rounding }),
        );
        expect(down).toBeLessThanOrEqual(x);
        expect(up).toBeGreaterThanOrEqual(x);
        if (down === up) {
          expect(down).toBe(x);
        } else {
          expect(nextUp(format, down) === up).toBe(true);
          expect(nextDown(format, up) === down).toBe(true);
        }
        expect(nearest === down || nearest === up).toBe(true);
        expect(truncated).toBe(x < 0 ? up : down);
      }),
    );
  });

  it('is odd, with the directions swapped', () => {
    const mirrored: Record<RoundingMode, RoundingMode> = {
      'nearest-even': 'nearest-even',
      'toward-zero': 'toward-zero',
      down: 'up',
      up: 'down',
    };
    fc.assert(
      fc.property(value, options, (x, chosen) => {
        const reflected = round(format, -x, { ...chosen, rounding: mirrored[chosen.rounding] });
        expect(reflected).toBe(-round(format, x, chosen));
      }),
    );
  });
});
