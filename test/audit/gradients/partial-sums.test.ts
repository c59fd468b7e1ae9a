import { describe, expect, it } from 'vitest';
import { randomValues } from '../../../properties/problems/values.js';
import {
  createPartialSums,
  partialSquares,
  partialSumNumbers,
} from '../../../src/audit/gradients/bounds/partial-sums.js';
import {
  byOthersOf,
  createPairMemory,
  emptyPairSums,
  loadFactor,
  otherParts,
} from '../../../src/audit/gradients/bounds/pair-sums.js';
import { createTileProducts, tileRows } from '../../../src/audit/bounds/index.js';
import { testSeed } from '../../setup/effort.js';

const random = randomValues(testSeed);

it.each([
  [4, 4],
  [40, 64],
  [64, 20],
])('of %i terms in %i columns are those of plain loops', (inner, columns) => {
  const products = createTileProducts(
    partialSumNumbers(columns) + tileRows * inner + inner * columns + 64,
  );
  const [a, b] = [products.matrix(tileRows * inner), products.matrix(inner * columns)];
  for (const { view } of [a, b]) view.forEach((_, i) => (view[i] = random.integer(-9, 9)));
  const sums = new Float64Array(tileRows * columns);
  const after: number[][] = [];
  createPartialSums(products, columns).forEachStretch(a, b, inner, columns, (added) => {
    for (let at = 0; at < sums.length; at++) sums[at] += added[at];
    after.push([...sums]);
  });
  const until = (row: number, column: number, end: number) => {
    let sum = 0;
    for (let k = 0; k < Math.min(end, inner); k++)
      sum += a.view[row * inner + k] * b.view[k * columns + column];
    return sum;
  };
  expect(after).toHaveLength(Math.ceil(inner / 16));
  // Integers: exact.
  after.forEach((found, index) => {
    const exact = found.map((_, at) =>
      until(Math.floor(at / columns), at % columns, 16 * (index + 1)),
    );
    expect(found).toEqual(exact);
  });
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

it.each([4, 64, 512, 1024])(
  'of %i columns have room in the memory that they ask for',
  (columns) => {
    const products = createTileProducts(partialSumNumbers(columns));
    expect(() => createPartialSums(products, columns)).not.toThrow();
  },
);

describe('the working memory of 64 queries and keys', () => {
  it.each([
    [640, 4, true, 0],
    [640, 4, false, 3],
    [4, 640, false, 0],
    [300, 301, true, 3],
  ])('has room for heads of %i and %i columns', (qkDim, vDim, usesNorms, others) => {
    const memory = createPairMemory(qkDim, vDim, { usesNorms, others });
    const { queries, keys, dout, values } = memory;
    const rows = [queries, keys, dout, values].map((factor) => {
      const drawn = Float64Array.from({ length: tileRows * factor.dim }, () =>
        random.integer(-9, 9),
      );
      loadFactor(factor, drawn);
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
      expect(memory.scores.view[at]).toBe(dot(qkDim, rows.slice(0, 2), i, j));
      expect(memory.products.view[at]).toBe(dot(vDim, rows.slice(2), i, j));
    }
  });

  it.each([0, 1, 2, 3])(
    'sums the known parts by %i other factors, and 0 for the others',
    (others) => {
      const sums = emptyPairSums(2, createPairMemory(4, 4, { usesNorms: true, others }));
      otherParts.forEach((part, k) => sums[part].fill(5 + k, 1));
      const found = new Float64Array(otherParts.length).fill(NaN);
      byOthersOf(sums, 1, -2, found);
      expect([...found]).toEqual([-10, -12, -14].map((x, k) => (k < others ? x : 0)));
    },
  );
});
