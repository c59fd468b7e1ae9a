import { expect, it } from 'vitest';
import { doubleDoubleRow } from '../../../oracles/gradients/double-double-row.js';
import { exactRow, type RoundedVector } from '../../../oracles/gradients/exact-row.js';
import { rationalOfFloat64 } from '../../../src/arith/index.js';
import { filledProblem } from '../../setup/problems.js';
import { oracleFeatures } from '../attention/features/featured-problems.js';
import { forEachRow, rowsOf } from './drawn-rows.js';

/** A fraction whose denominator is positive. */
interface Fraction {
  readonly numerator: bigint;
  readonly denominator: bigint;
}

const plus = (a: Fraction, b: Fraction): Fraction => ({
  numerator: a.numerator * b.denominator + b.numerator * a.denominator,
  denominator: a.denominator * b.denominator,
});

/** A ratio of sizes as a number; 0 for 0. */
function ratio(a: Fraction, b: Fraction): number {
  const numerator = (a.numerator < 0n ? -a.numerator : a.numerator) * b.denominator;
  const denominator = a.denominator * b.numerator;
  if (numerator === 0n) return 0;
  return denominator === 0n ? Infinity : Number((numerator << 40n) / denominator) * 2 ** -40;
}

/** Element j of a vector in fixed point. */
function fractionOf({ integers, exponent, share }: RoundedVector, j: number): Fraction {
  return exponent >= 0
    ? { numerator: integers[j] << BigInt(exponent), denominator: share }
    : { numerator: integers[j], denominator: share << BigInt(-exponent) };
}

/** A number of a level as a fraction, with its radius. */
type Numbers = (j: number) => readonly [Fraction, number];

const referenceBits = 3072;

/** The largest share of a radius that any number uses. */
function largestShare(count: number, level: Numbers, reference: Numbers): number {
  let largest = 0;
  for (let j = 0; j < count; j++) {
    const [[value, radius], [exact, ofExact]] = [level(j), reference(j)];
    const difference = plus(value, { ...exact, numerator: -exact.numerator });
    const bound = plus(rationalOfFloat64(radius), rationalOfFloat64(ofExact));
    largest = Math.max(largest, ratio(difference, bound));
  }
  return largest;
}

const ofVector =
  (vector: RoundedVector): Numbers =>
  (j) => [fractionOf(vector, j), vector.radius[j]];

it.each([40, 64, 192])('fixed point of %s bits is within its radii of many more', (bits) => {
  let most = 0;
  forEachRow(({ row, rules, dout }) => {
    const [few, many] = [bits, referenceBits].map((b) => exactRow(row, dout.values, rules.law, b));
    for (const name of ['weights', 'derivatives', 'scoreDerivatives'] as const) {
      const share = largestShare(row.visible.length, ofVector(few[name]), ofVector(many[name]));
      if (!(share <= 1))
        expect(share, `${name} of ${row.visible.length} keys`).toBeLessThanOrEqual(1);
      most = Math.max(most, share);
    }
  });
  // Radii that are far too large would be no better than those that are too small.
  expect(most).toBeGreaterThan(2 ** -6);
});

/** It takes no softcap; and rows that see one key say nothing, so that it takes some problems to say something. */
const ofDoubleDouble = { problems: 24, of: oracleFeatures.filter((name) => name !== 'softcap') };

it('double-double is within its radii of fixed point', () => {
  let most = 0;
  let solved = 0;
  forEachRow(({ row, rules, dout }) => {
    const found = doubleDoubleRow(row, dout, rules.law, rules.constants);
    if (found === null) return;
    solved++;
    const { values, rests, radius } = found.derivatives;
    const derivatives: Numbers = (j) => [
      plus(rationalOfFloat64(values[j]), rationalOfFloat64(rests[j])),
      radius[j],
    ];
    const many = exactRow(row, dout.values, rules.law, referenceBits);
    const share = largestShare(values.length, derivatives, ofVector(many.derivatives));
    if (!(share <= 1)) expect(share, `${values.length} keys`).toBeLessThanOrEqual(1);
    most = Math.max(most, share);
    // P is rounded to fp64 here: its radius is of what it was before.
    const weights: Numbers = (j) => [
      rationalOfFloat64(found.weights.values[j]),
      found.weights.radius[j] + 2 ** -52 * found.weights.values[j],
    ];
    expect(largestShare(values.length, weights, ofVector(many.weights))).toBeLessThanOrEqual(1);
  }, ofDoubleDouble);
  expect(solved).toBeGreaterThan(0);
  expect(most).toBeGreaterThan(2 ** -16);
});

/** A row whose D is 0 and whose products with dO are not: weights are equal, and values cancel. */
function cancellingRow(keys: number, vDim: number) {
  const value = (at: number) => (Math.floor(at / vDim) % 2 === 0 ? 1 : -1);
  const problem = filledProblem(
    { queries: 1, keys, dim: 1, vDim, format: 'fp32' },
    { q: () => 0, k: () => 1, v: value },
  );
  const [{ row, rules, dout }] = [...rowsOf(problem, 3)];
  const size = dout.values.reduce((sum, x) => sum + Math.abs(x), 0);
  return { ...doubleDoubleRow(row, dout, rules.law, rules.constants)!, size };
}

it('D in double-double has the errors of its sum and of its products, also where it is 0', () => {
  const u = 2 ** -53;
  // Each addition errs by 3u² of the sizes; a compensated product by 2d²u² of its own (docs/theory/bounds-backward.md).
  const manyKeys = cancellingRow(512, 1);
  expect(manyKeys.mean).toBe(0);
  expect(manyKeys.meanRadius).toBeGreaterThan(3 * 511 * u ** 2 * manyKeys.meanSize);
  const manyColumns = cancellingRow(2, 512);
  expect(manyColumns.mean).toBe(0);
  expect(manyColumns.meanRadius).toBeGreaterThan(2 * 512 ** 2 * u ** 2 * manyColumns.size);
  expect(manyColumns.meanRadius).toBeLessThan(2 ** -20 * u * manyColumns.size * 512);
});
