import { describe, expect, it } from 'vitest';
import {
  addFloat64,
  divideFloat64,
  fusedMultiplyAddFloat64,
  multiplyFloat64,
  squareRootFloat64,
} from '../../src/arith/index.js';
import type { RoundingMode } from '../../src/formats/index.js';
import {
  bits64,
  type Exact,
  exact,
  float64,
  negative,
  order,
  product,
  roundToFloat64,
  sum,
} from './exact.js';
import { float64Within, words } from './float64-patterns.js';

const modes: readonly RoundingMode[] = ['nearest-even', 'toward-zero', 'down', 'up'];

function neighbour(value: number, direction: 1 | -1): number {
  const grows = value > 0 === direction > 0;
  return float64(bits64(value) + (grows ? 1n : -1n));
}

/** Whether a number is the exact one rounded in a mode, told by its neighbours: for numbers far from the ends. */
function isRounded(
  result: number,
  compare: (candidate: Exact) => number,
  mode: RoundingMode,
): boolean {
  const side = compare(exact(result));
  if (side === 0) return true;
  const isBelow = side < 0;
  const other = neighbour(result, isBelow ? 1 : -1);
  if (compare(exact(other)) < 0 === isBelow) return false;
  if (mode === 'down') return isBelow;
  if (mode === 'up') return !isBelow;
  if (mode === 'toward-zero') return isBelow === result > 0;
  const { integer, exponent } = sum(exact(result), exact(other));
  const middle = compare({ integer, exponent: exponent - 1 });
  return middle === 0 ? (bits64(result) & 1n) === 0n : middle > 0 === isBelow;
}

const ranges: readonly (readonly [number, number])[] = [
  [0, 2046],
  [1000, 1060],
  [0, 3],
  [2040, 2046],
  [1020, 1024],
];

function check(cases: number, one: (numbers: readonly number[], mode: RoundingMode) => boolean) {
  const next = words(20261123);
  let wrong = 0;
  for (let i = 0; i < cases; i++) {
    const numbers = [0, 1, 2].map((k) => {
      const [low, high] = ranges[(next() + k) % ranges.length];
      return float64Within(next, low, high);
    });
    // Sums that nearly cancel, and products next to halves.
    if (i % 4 === 0) numbers[2] = -(numbers[0] * numbers[1]);
    if (i % 4 === 1) numbers[1] = numbers[0] === 0 ? 1 : -neighbour(numbers[0], 1);
    if (!numbers.every(Number.isFinite)) numbers.fill(1.5);
    for (const mode of modes) if (!one(numbers, mode)) wrong++;
  }
  expect(wrong).toBe(0);
}

describe('fp64 in four rounding modes', () => {
  it('adds', () => {
    check(600, ([a, b], mode) => {
      const result = addFloat64(a, b, mode);
      const total = sum(exact(a), exact(b));
      if (total.integer === 0n) return result === 0;
      return result === roundToFloat64(total, mode);
    });
  });

  it('multiplies', () => {
    check(600, ([a, b], mode) => {
      const result = multiplyFloat64(a, b, mode);
      const total = product(exact(a), exact(b));
      if (total.integer === 0n) return result === 0;
      return result === roundToFloat64(total, mode);
    });
  });

  it('multiplies and adds with one rounding', () => {
    check(1000, ([a, b, c], mode) => {
      const result = fusedMultiplyAddFloat64(a, b, c, mode);
      const total = sum(product(exact(a), exact(b)), exact(c));
      if (total.integer === 0n) return result === 0;
      return result === roundToFloat64(total, mode);
    });
  });

  it('divides', () => {
    check(500, ([a, b], mode) => {
      const result = divideFloat64(a, b, mode);
      if (!(Math.abs(result) > 2 ** -1000 && Math.abs(result) < 2 ** 1000)) return true;
      // x against a / b is x · |b| against ±a.
      const [top, bottom] = b < 0 ? [negative(exact(a)), negative(exact(b))] : [exact(a), exact(b)];
      return isRounded(result, (x) => order(product(x, bottom), top), mode);
    });
  });

  it('takes roots', () => {
    check(500, ([a], mode) => {
      const radicand = Math.abs(a);
      if (radicand === 0) return true;
      const result = squareRootFloat64(radicand, mode);
      return isRounded(result, (x) => order(product(x, x), exact(radicand)), mode);
    });
  });

  it('gives zeros, infinities and NaN as IEEE 754 says', () => {
    expect(addFloat64(1, -1, 'down')).toBe(-0);
    expect(addFloat64(1, -1, 'up')).toBe(0);
    expect(fusedMultiplyAddFloat64(1, 1, -1, 'down')).toBe(-0);
    expect(fusedMultiplyAddFloat64(0, 5, -0, 'nearest-even')).toBe(0);
    expect(fusedMultiplyAddFloat64(Infinity, 0, 1, 'up')).toBeNaN();
    expect(fusedMultiplyAddFloat64(2 ** 1000, 2 ** 1000, -Infinity, 'up')).toBe(-Infinity);
    // The product is 1 − 2^−54, so that the sum lies just below a tie.
    expect(fusedMultiplyAddFloat64(1 + 2 ** -27, 1 - 2 ** -27, 2 ** 53 + 2, 'nearest-even')).toBe(
      2 ** 53 + 2,
    );
    expect(multiplyFloat64(Number.MAX_VALUE, 2, 'toward-zero')).toBe(Number.MAX_VALUE);
    expect(multiplyFloat64(-Number.MIN_VALUE, 0.5, 'down')).toBe(-Number.MIN_VALUE);
    expect(divideFloat64(1, 0, 'down')).toBe(Infinity);
    expect(squareRootFloat64(-0, 'up')).toBe(-0);
    expect(squareRootFloat64(-1, 'up')).toBeNaN();
  });
});
