import { describe, expect, it } from 'vitest';
import { attentionOracle, isAccurate, levels } from '../../../oracles/index.js';
import { readOperand, dotError } from '../../../oracles/attention/operand.js';
import { rationalOfFloat64, type Rational } from '../../../src/arith/index.js';
import { encodeFromFloat64, formats, type FormatName } from '../../../src/formats/index.js';
import { scoredKeys, singleHead } from '../../setup/problems.js';

const u = 2 ** -53;

function operand(format: FormatName, values: readonly number[]) {
  const data = encodeFromFloat64(formats[format], Float64Array.from(values));
  return readOperand({ format, shape: [1, 1, 1, values.length], data }, 0, 1, values.length);
}

function times(a: Rational, b: Rational): Rational {
  return { numerator: a.numerator * b.numerator, denominator: a.denominator * b.denominator };
}

function minus(a: Rational, b: Rational): Rational {
  const numerator = a.numerator * b.denominator - b.numerator * a.denominator;
  return { numerator, denominator: a.denominator * b.denominator };
}

/** |a| ≤ b, exactly. */
function isWithin(a: Rational, b: number): boolean {
  const bound = rationalOfFloat64(b);
  const size = a.numerator < 0n ? -a.numerator : a.numerator;
  return size * bound.denominator <= bound.numerator * a.denominator;
}

/** The fp64 dot product, one rounding a product and one a sum, less the exact one. */
function dotDifference(q: readonly number[], k: readonly number[]): Rational {
  const rounded = q.reduce((sum, x, t) => sum + x * k[t], 0);
  return q.reduce(
    (rest, x, t) => minus(rest, times(rationalOfFloat64(x), rationalOfFloat64(k[t]))),
    rationalOfFloat64(rounded),
  );
}

function boundOf(format: FormatName, q: readonly number[], k: readonly number[]): number {
  return dotError(operand(format, q), 0, operand(format, k), 0);
}

describe('the bound of a dot product, beside the exact error', () => {
  // Each with the least multiple of the error that the bound must reach, and the most that it may.
  const cases: readonly (readonly [string, number[], number[], number])[] = [
    // (1 + u·2)² = 1 + 4u + 4u²: half an ulp is 1u.
    ['a product just above a tie', [1 + 3 * 2 * u], [1 + 2 ** -2 + 2 * u], 40],
    // 1 + u each time, ties to even: what is lost is u of 1 in each of the sums.
    ['ties that all round down', [1, u, u, u, u, u], [1, 1, 1, 1, 1, 1], 8],
    ['ones whose sum needs a bit more', [2 ** 53, 1, 1], [1, 1, 1], 8],
  ];
  it.each(cases)('%s', (_, q, k, most) => {
    const error = dotDifference(q, k);
    const bound = boundOf('fp64', q, k);
    expect(isWithin(error, bound)).toBe(true);
    expect(error.numerator).not.toBe(0n);
    expect(isWithin(error, bound / most), `no more than ${most} times the error`).toBe(false);
  });

  it.each([
    // Half the smallest subnormal each, rounded to even: 0 for an error of 2^-1075.
    ['one product that is lost', [2 ** -538], [2 ** -537]],
    ['products that are lost', Array<number>(9).fill(2 ** -538), Array<number>(9).fill(2 ** -537)],
    [
      'products that lose bits',
      Array<number>(5).fill(1.5 * 2 ** -537),
      Array<number>(5).fill(1.25 * 2 ** -537),
    ],
  ])('%s among the subnormals', (_, q, k) => {
    const error = dotDifference(q, k);
    expect(error.numerator).not.toBe(0n);
    const bound = boundOf('fp64', q, k);
    expect(isWithin(error, bound)).toBe(true);
    // Two of the smallest subnormals a term: a product that is lost errs by half of one.
    expect(bound).toBeLessThanOrEqual(q.length * 2 ** -1073 + 2 ** -1074);
    expect(bound).toBeGreaterThanOrEqual(q.length * 2 ** -1075);
  });

  it('counts a term for each element that is finer than an ulp of the product of norms', () => {
    // ‖q‖ = 2^20, one element is finer than 2^(20 − 52) and one is a multiple of it.
    const bound = (fine: number) =>
      boundOf('fp64', [2 ** 20, fine, 2 ** -10], [1, 2 ** -20, 2 ** -20]);
    const one = bound(1 + 2 ** -40);
    expect(one).toBeGreaterThanOrEqual(2 ** 20 * u);
    expect(one).toBeLessThanOrEqual(2 ** 20 * 8 * u);
    // Products of 8 bits with 8 reach 2^-44 there, and 2^-74, which is below the last bit of 1.
    expect(boundOf('bf16', [1, 2 ** -30], [1, 1])).toBe(0);
    expect(boundOf('bf16', [1, 2 ** -60], [1, 1])).toBeGreaterThanOrEqual(2 ** -60);
    expect(boundOf('bf16', [1, 2 ** -60], [1, 1])).toBeLessThanOrEqual(2 ** -51);
  });

  it('is infinite where a product of norms may overflow, and only there', () => {
    const third = 1 / 3;
    expect(boundOf('fp64', [2 ** 500 * third], [2 ** 505])).toBe(Infinity);
    expect(boundOf('fp64', [2 ** 400 * third], [2 ** 500 * third])).toBeLessThan(2 ** 900);
  });
});

describe('the accuracy that is asked for', () => {
  const accuracy = { outputFormat: 'fp32', ulpFraction: 2 ** -4, magnitudeFraction: 0 } as const;
  const row = (changes: object) => ({
    out: Float64Array.of(1, 3),
    outRadius: new Float64Array(2),
    lse: 1,
    lseRadius: 0,
    magnitude: Float64Array.of(1, 3),
    maximum: 0,
    denominator: 1,
    ...changes,
  });

  it('is that of every element, in ulps of its own value', () => {
    // An ulp of fp32 is 2^-23 at 1 and 2^-22 at 3.
    const radii = (...of: number[]) =>
      isAccurate(row({ outRadius: Float64Array.from(of) }), accuracy);
    expect(radii(2 ** -27, 2 ** -26)).toBe(true);
    expect(radii(2 ** -27 * 1.01, 0)).toBe(false);
    expect(radii(0, 2 ** -26 * 1.01)).toBe(false);
    expect(radii(NaN, 0)).toBe(false);
    expect(radii(0, Infinity)).toBe(false);
  });

  it('is of the magnitude where that is more, and never below what fp64 holds', () => {
    const one = (radius: number, asked: object, changes: object = {}) =>
      isAccurate(row({ outRadius: Float64Array.of(radius, 0), ...changes }), {
        ...accuracy,
        ulpFraction: 0,
        ...asked,
      });
    const magnitude = { magnitude: Float64Array.of(100, 3) };
    expect(one(100 * 2 ** -40, { magnitudeFraction: 2 ** -40 }, magnitude)).toBe(true);
    expect(one(101 * 2 ** -40, { magnitudeFraction: 2 ** -40 }, magnitude)).toBe(false);
    expect(one(2 ** -52, {})).toBe(true);
    expect(one(2 ** -51, {})).toBe(false);
    const zero = { out: Float64Array.of(0, 0), magnitude: Float64Array.of(0, 0) };
    expect(one(2 ** -1072, {}, zero)).toBe(true);
    expect(one(2 ** -1071, {}, zero)).toBe(false);
  });

  it('is that of the LSE, in ulps of fp32, of fp64 or 2^-34, whichever is most', () => {
    const lse = (value: number, radius: number, ulpFraction = 2 ** -4) =>
      isAccurate(row({ lse: value, lseRadius: radius }), { ...accuracy, ulpFraction });
    expect(lse(1, 2 ** -27)).toBe(true);
    expect(lse(-1, 2 ** -26)).toBe(false);
    expect(lse(0, 2 ** -34, 0)).toBe(true);
    expect(lse(0, 2 ** -33, 0)).toBe(false);
    expect(lse(2 ** 30, 2 ** -22, 0)).toBe(true);
    expect(lse(2 ** 30, 2 ** -21, 0)).toBe(false);
    expect(lse(-Infinity, 0)).toBe(true);
    expect(lse(Infinity, Infinity)).toBe(false);
    expect(lse(0, NaN)).toBe(false);
  });
});

describe('a row computed by hand', () => {
  it('of equal weights has its mean within the radius, and the radius is a few roundings', () => {
    for (const [values, mean] of [
      [[1, 2, 6], { numerator: 3n, denominator: 1n }],
      [[1, 0, 0], { numerator: 1n, denominator: 3n }],
      [[1e10, 1, -1e10], { numerator: 1n, denominator: 3n }],
    ] as const) {
      const reference = attentionOracle(scoredKeys('fp32', [0.5, 0.5, 0.5], values), {
        accuracy: { outputFormat: 'fp32', ulpFraction: 1, magnitudeFraction: 1 },
      });
      expect(levels[reference.level[0]]).toBe('fp64');
      const [out, radius] = [
        reference.quantities.out.values[0],
        reference.quantities.out.radius[0],
      ];
      expect(isWithin(minus(rationalOfFloat64(out), mean), radius)).toBe(true);
      const size = values.reduce<number>((sum, x) => sum + Math.abs(x), 0) / 3;
      expect(reference.quantities.out.magnitude[0]).toBeCloseTo(size, 3);
      // At least one rounding; the sum of a tile of 64 keys is taken for 65 of them, twice.
      expect(radius).toBeGreaterThanOrEqual(u * Math.abs(out));
      expect(radius).toBeLessThanOrEqual(160 * u * size);
    }
  });

  it('has an LSE within its radius, of a few roundings too', () => {
    // Two equal scores: LSE = score + ln 2.
    for (const score of [0, 0.5, 20, -300]) {
      const {
        quantities: {
          lse: { values: lse, radius: lseRadius },
        },
      } = attentionOracle(scoredKeys('fp32', [score, score], [1, 2]), {
        accuracy: { outputFormat: 'fp32', ulpFraction: 1, magnitudeFraction: 1 },
      });
      const exact = score + Math.LN2;
      expect(Math.abs(lse[0] - exact)).toBeLessThanOrEqual(
        lseRadius[0] + 2 ** -53 * Math.abs(exact),
      );
      expect(lseRadius[0]).toBeGreaterThanOrEqual(2 ** -54 * Math.abs(exact));
      expect(lseRadius[0]).toBeLessThanOrEqual(200 * u * (1 + Math.abs(exact)));
    }
  });

  it('counts the error of its scores: worst-case dots move the weights within the radius', () => {
    // q·k of the first key is 2^27·(1 + 2^-52·…) − 2^27: the fp64 sum loses what the exact one has.
    const fine = 1 + 2 ** -23;
    const q = [2 ** 14, fine, -(2 ** 14)];
    const keys = [
      [2 ** 16, 2 ** -24 * fine, 2 ** 16],
      [0, 0, 0],
    ];
    const reference = attentionOracle(singleHead('fp32', { q: [q], k: keys, v: [[1], [0]] }), {
      accuracy: { outputFormat: 'fp32', ulpFraction: 1, magnitudeFraction: 1 },
    });
    const score = 2 ** -24 * fine * fine;
    const exact = 1 / (1 + Math.exp(-score));
    expect(Math.abs(reference.quantities.out.values[0] - exact)).toBeLessThanOrEqual(
      reference.quantities.out.radius[0] + u,
    );
    expect(
      Math.abs(reference.quantities.lse.values[0] - Math.log1p(Math.exp(score))),
    ).toBeLessThanOrEqual(reference.quantities.lse.radius[0] + u);
    if (levels[reference.level[0]] === 'fp64')
      expect(reference.quantities.out.radius[0]).toBeGreaterThan(2 ** 30 * u * 2 ** -2 * 2 ** -2);
  });
});

describe('∞ in V under a weight', () => {
  const at = (scores: readonly number[], values: readonly number[]) => {
    const reference = attentionOracle(scoredKeys('fp32', scores, values));
    expect(levels[reference.level[0]]).toBe('special');
    return reference.quantities.out.values[0];
  };

  it.each([Infinity, -Infinity])('%d, beside nothing else, is the column', (infinity) => {
    expect(at([0, 1, 2], [3, infinity, 1])).toBe(infinity);
    expect(at([0, 1, -Infinity], [3, infinity, 1])).toBe(infinity);
    expect(at([0, 1, 2], [infinity, infinity, 1])).toBe(infinity);
  });

  it.each([Infinity, -Infinity])(
    '%d, beside a special value under weight 0, is a NaN',
    (infinity) => {
      for (const other of [Infinity, -Infinity, NaN]) {
        expect(at([0, 1, -Infinity], [3, infinity, other])).toBeNaN();
        expect(at([-Infinity, 1, 0], [other, infinity, 1])).toBeNaN();
        expect(at([-Infinity, 1, -Infinity], [2, infinity, other])).toBeNaN();
      }
    },
  );

  it('and a special value under weight 0 alone is one too', () => {
    for (const other of [Infinity, -Infinity, NaN])
      expect(at([0, 1, -Infinity], [3, 2, other])).toBeNaN();
  });

  it('leaves the other columns and the LSE as they are', () => {
    const rows = { q: [[1]], k: [[0], [1], [-Infinity]] };
    const special = attentionOracle(
      singleHead('fp32', {
        ...rows,
        v: [
          [3, 3],
          [Infinity, 2],
          [NaN, 7],
        ],
      }),
    );
    const plain = attentionOracle(
      singleHead('fp32', {
        ...rows,
        v: [
          [3, 3],
          [5, 2],
          [1, 7],
        ],
      }),
    );
    expect(special.quantities.out.values[0]).toBeNaN();
    expect([special.quantities.out.values[1], special.quantities.out.radius[1]]).toEqual([
      plain.quantities.out.values[1],
      plain.quantities.out.radius[1],
    ]);
    expect([special.quantities.lse.values[0], special.quantities.lse.radius[0]]).toEqual([
      plain.quantities.lse.values[0],
      plain.quantities.lse.radius[0],
    ]);
    expect(special.quantities.out.magnitude[0]).toBeNaN();
    expect(special.quantities.out.radius[0]).toBe(0);
  });
});
