import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formats, nextDown, nextUp, ulp } from '../../src/formats/index.js';
import { cutCells, ordinalsOf, slicesOf } from '../../src/profile/cells.js';
import {
  bitsOfOrdinal,
  ordinalCount,
  ordinalOfBits,
  ordinalOfValue,
  spacingExponentOf,
  valueOfOrdinal,
} from '../../src/profile/float32-order.js';
import { exp2Cells, exp2Domains } from '../../src/profile/techniques/input-cells.js';
import { linearPanel, logarithmicPanel } from '../../src/profile/techniques/profile.js';
import { unitProfiles } from '../../src/profile/techniques/special-functions.js';
import { RequestError } from '../../src/request-error.js';
import { anyBits, float32 } from './random-results.js';

const { fp32 } = formats;
const number = anyBits.map(float32).filter((x) => !Number.isNaN(x));

describe('the order of fp32 numbers', () => {
  it('is that of the values, with −0 before +0', () => {
    fc.assert(
      fc.property(number, number, (a, b) => {
        const order = Math.sign(ordinalOfValue(a) - ordinalOfValue(b));
        expect(a < b ? -1 : a > b ? 1 : Object.is(a, b) ? 0 : Object.is(a, -0) ? -1 : 1).toBe(
          order,
        );
      }),
      { numRuns: 2000 },
    );
  });

  it('has a bit pattern for every ordinal and back', () => {
    fc.assert(
      fc.property(anyBits, (bits) => {
        expect(bitsOfOrdinal(ordinalOfBits(bits))).toBe(bits);
      }),
    );
    expect([ordinalOfBits(0xffffffff), ordinalOfBits(0x7fffffff)]).toEqual([0, ordinalCount - 1]);
  });

  it('has the neighbours and ulps of src/formats', () => {
    fc.assert(
      fc.property(
        number.filter((x) => x !== 0 && Number.isFinite(x) && Math.abs(x) < fp32.maxFinite),
        (x) => {
          const ordinal = ordinalOfValue(x);
          expect(valueOfOrdinal(ordinal + 1)).toBe(nextUp(fp32, x));
          expect(valueOfOrdinal(ordinal - 1)).toBe(nextDown(fp32, x));
          expect(2 ** spacingExponentOf(ordinal)).toBe(ulp(fp32, x));
        },
      ),
    );
  });
});

const tables = [
  ['exp2', exp2Cells],
  ...(['rcp', 'log2', 'rsqrt'] as const).map((name) => [name, unitProfiles[name].cells] as const),
] as const;

describe.each(tables)('the cells of %s', (_, cells) => {
  it('are all 2^32 inputs, each once, in order', () => {
    let next = 0;
    for (const { first, last, label } of cells) {
      expect(first, label).toBe(next);
      expect(last, label).toBeGreaterThanOrEqual(first);
      next = last + 1;
    }
    expect(next).toBe(ordinalCount);
  });

  it('are cut into slices without gaps, each of one ulp', () => {
    const slices = [...slicesOf(cells)].sort((a, b) => a.first - b.first);
    const isOfOneUlp = (first: number, last: number): boolean =>
      !Number.isFinite(valueOfOrdinal(first)) ||
      !Number.isFinite(valueOfOrdinal(last)) ||
      spacingExponentOf(first) === spacingExponentOf(last);
    let next = 0;
    const faulty = slices.filter(({ first, last, cell }) => {
      const isNext = first === next;
      next = last + 1;
      const isWithin = cells[cell].first <= first && last <= cells[cell].last;
      return !(isNext && isWithin && last - first < 2 ** 20 && isOfOneUlp(first, last));
    });
    expect(faulty).toEqual([]);
    expect(next).toBe(ordinalCount);
  });
});

describe('the domains of exp2', () => {
  it('hold every measured cell once', () => {
    for (const cell of exp2Cells)
      expect(exp2Domains.filter(({ has }) => has(cell))).toHaveLength(cell.isMeasured ? 1 : 0);
  });
});

describe('a range', () => {
  it('holds just the numbers between its ends', () => {
    const end = fc.double({ min: -200, max: 200, noNaN: true });
    fc.assert(
      fc.property(end, end, number, (a, b, x) => {
        const [from, to] = [Math.min(a, b), Math.max(a, b)];
        const { first, last } = ordinalsOf({ from, to });
        const ordinal = ordinalOfValue(x);
        expect(first <= ordinal && ordinal <= last).toBe(from <= x && x <= to);
      }),
      { numRuns: 2000 },
    );
  });

  it('cuts cells and leaves out those outside', () => {
    const cut = cutCells(exp2Cells, { from: -1, to: 0 });
    expect(cut.map(({ label }) => label)).toEqual([
      '-126 <= x < -2^-25',
      '-2^-25 <= x <= -2^-126',
      'x < 0 subnormal',
      '-0',
      '+0',
    ]);
    expect(valueOfOrdinal(cut[0].first)).toBe(-1);
  });

  it('without a measured input is refused', () => {
    for (const range of [
      { from: 200, to: 300 },
      { from: 1.00000001, to: 1.00000002 },
    ])
      expect(() => cutCells(exp2Cells, range)).toThrow(RequestError);
    expect(() => cutCells(exp2Cells, { from: 200 })).toThrow(
      /no fp32 input from 200 to Infinity .* between -126\.99999237060547 and 127\.99999237060547/,
    );
  });
});

describe('the columns of a plot', () => {
  it.each([
    [-127, 128, 0.25],
    [-1, 0, 2 ** -10],
    [100, 100.001, 2 ** -19],
  ])('from %f to %f have the width of a power of two', (from, to, width) => {
    const panel = linearPanel('x', from, to);
    expect(panel.from <= from && panel.to >= to).toBe(true);
    const ordinals = new Set(panel.boundaries);
    expect(ordinals.size).toBe(panel.boundaries.length);
    for (const boundary of panel.boundaries) {
      const place = valueOfOrdinal(boundary) / width;
      // Where fp32 is coarser than a column, the number behind the boundary.
      expect(Math.abs(place - Math.round(place))).toBeLessThan(
        Math.max(0, 2 ** spacingExponentOf(boundary) / width) + 1e-300,
      );
    }
  });

  it('of a logarithmic axis are quarters of binades', () => {
    const { boundaries } = logarithmicPanel('x', 2 ** -126, 2 ** 127);
    expect(boundaries).toHaveLength(4 * 253 + 1);
    expect(valueOfOrdinal(boundaries[4 * 126])).toBe(1);
    expect(valueOfOrdinal(boundaries[4 * 126 + 1])).toBe(1.25);
  });
});
