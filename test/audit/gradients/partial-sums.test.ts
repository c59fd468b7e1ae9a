import { describe, expect, it } from 'vitest';
import { randomValues } from '../../../properties/problems/values.js';
import {
  operandRounding,
  type PairArithmetic,
} from '../../../src/audit/gradients/bounds/pair-arithmetic.js';
import { loadFactor } from '../../../src/audit/gradients/bounds/pairs/factor-rows.js';
import { createPairMemory } from '../../../src/audit/gradients/bounds/pairs/pair-memory.js';
import { partialSquares } from '../../../src/audit/gradients/bounds/pairs/partial-sums.js';
import { emptyPairSums, otherParts } from '../../../src/audit/gradients/bounds/pairs/pair-sums.js';
import { createPairTile } from '../../../src/audit/gradients/bounds/pairs/pair-tile.js';
import { tileRows } from '../../../src/audit/bounds/index.js';
import { testSeed } from '../../setup/effort.js';
import { coarseArithmetic, drawFrom } from './definitions/random-pairs.js';

const random = randomValues(testSeed);

const features = { hasAddends: false, hasFactors: false };

/** The arithmetic of a kernel that rounds operands, or does not, with some factors before it does. */
function arithmeticOf(isRounded: boolean, others: number): PairArithmetic {
  const factors = [0.3, 0.5, 0.7].slice(0, others);
  const ds = operandRounding(isRounded ? 'bf16' : 'fp64', 2 ** -24, factors, 1);
  return coarseArithmetic(drawFrom(1), { ds });
}

it.each([
  [4, 4],
  [40, 64],
  [64, 20],
])('of %i terms in %i columns are those of plain loops', (inner, columns) => {
  const counts = [tileRows * inner, inner * columns, tileRows * columns, tileRows * columns];
  const { kernels, matrix } = createPairTile(
    arithmeticOf(true, 0),
    { ...features, hasPartials: false },
    counts.reduce((sum, count) => sum + count, 0),
  );
  const [a, b, sums, largest] = counts.map(matrix);
  for (const { view } of [a, b]) view.forEach((_, i) => (view[i] = random.integer(-9, 9)));
  // What was there before counts.
  const before = sums.view.map(() => random.integer(-99, 99));
  sums.view.set(before);
  kernels.addStretches(
    a.address,
    b.address,
    sums.address,
    largest.address,
    8 * inner,
    8,
    inner,
    columns,
  );
  const until = (row: number, column: number, end: number) => {
    let sum = 0;
    for (let k = 0; k < Math.min(end, inner); k++)
      sum += a.view[row * inner + k] * b.view[k * columns + column];
    return sum;
  };
  // Integers: exact.
  for (let at = 0; at < before.length; at++) {
    const [row, column] = [Math.floor(at / columns), at % columns];
    const met = Array.from(
      { length: Math.ceil(inner / 16) },
      (_, k) => before[at] + until(row, column, 16 * (k + 1)),
    );
    expect(sums.view[at]).toBe(met[met.length - 1]);
    expect(largest.view[at]).toBe(Math.max(...met.map(Math.abs)));
  }
});

/** The mean square of the partial sums of terms in an order. */
function squaresOf(terms: readonly number[]): number {
  let [sum, squares] = [0, 0];
  for (const term of terms) {
    sum += term;
    squares += sum * sum;
  }
  return squares / terms.length;
}

it('of terms in random orders have a mean square that is no larger than is said', () => {
  const drawn = {
    normal: () => random.normal(),
    'of one sign': () => 1 + random.uniform(),
    'one of them large': (i: number) => (i === 7 ? 50 : random.normal()),
    'cancelling ones': (i: number) => (i % 2 === 0 ? 1 : -1),
  };
  for (const [name, draw] of Object.entries(drawn)) {
    const terms = Array.from({ length: 48 }, (_, i) => draw(i));
    const sum = terms.reduce((all, x) => all + x, 0);
    const squares = terms.reduce((all, x) => all + x * x, 0);
    let mean = 0;
    const orders = 2000;
    for (let i = 0; i < orders; i++) {
      const keys = terms.map((value) => ({ value, key: random.uniform() }));
      mean += squaresOf(keys.sort((x, y) => x.key - y.key).map(({ value }) => value)) / orders;
    }
    // (n + 1)/n of a sixth, and the deviation of a mean of 2000.
    expect(mean, name).toBeLessThan(1.1 * partialSquares(Math.abs(sum), squares));
  }
});

describe('the working memory of 64 queries and keys', () => {
  it.each([
    [640, 4, true, 0],
    [640, 4, false, 3],
    [4, 640, false, 0],
    [300, 301, true, 3],
  ])('has room for heads of %i and %i columns', (qkDim, vDim, isRounded, others) => {
    const arithmetic = arithmeticOf(isRounded, others);
    const memory = createPairMemory(arithmetic, { qkDim, vDim }, features);
    const { queries, keys, dout, values } = memory;
    const rows = [queries, keys, dout, values].map((factor) => {
      const drawn = Float64Array.from({ length: tileRows * factor.dim }, () =>
        random.integer(-9, 9),
      );
      loadFactor(memory.tile.kernels, factor, drawn);
      return drawn;
    });
    memory.multiplyRows();
    const dot = (dim: number, [a, b]: readonly Float64Array[], i: number, j: number) => {
      let sum = 0;
      for (let c = 0; c < dim; c++) sum += a[i * dim + c] * b[j * dim + c];
      return sum;
    };
    for (const [i, j] of [
      [0, 0],
      [17, 40],
      [63, 63],
    ]) {
      const at = i * tileRows + j;
      // Integers: exact.
      expect(memory.tile.known.dot[at]).toBe(dot(qkDim, rows.slice(0, 2), i, j));
      expect(memory.tile.known.product[at]).toBe(dot(vDim, rows.slice(2), i, j));
    }
  });

  it.each([0, 1, 2, 3])('sums the known parts by %i other factors, and no others', (others) => {
    const arithmetic = arithmeticOf(true, others);
    const memory = createPairMemory(arithmetic, { qkDim: 4, vDim: 4 }, features);
    const sums = emptyPairSums(2, memory);
    expect(otherParts.map((part) => sums[part].length)).toEqual(
      otherParts.map((_, k) => (k < others ? 2 : 0)),
    );
  });
});
