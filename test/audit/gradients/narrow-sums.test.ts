import { describe, expect, it } from 'vitest';
import { auditGradients } from '../../../src/audit/index.js';
import {
  anyOrders,
  ordersOf,
} from '../../../src/audit/gradients/diagnosis/narrow-sums/addition-orders.js';
import {
  narrowErrors,
  narrowSums,
  tileSums,
} from '../../../src/audit/gradients/diagnosis/narrow-sums/narrow-sum.js';
import { formats, round } from '../../../src/formats/index.js';
import { seededRandom } from '../../kernels/features/index.js';
import { drawDout, faultyBackwards } from '../../kernels/gradients/index.js';
import { testSeed } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

const bf16 = (x: number) => round(formats.bf16, x);

/** One row of two heads, five terms each, of one column. */
const terms = {
  factors: Float64Array.from({ length: 10 }, (_, i) => Math.sin(i + testSeed)),
  rows: 1,
  heads: 2,
  places: 5,
  offsets: Int32Array.from({ length: 10 }, (_, i) => i),
  operand: Float64Array.from({ length: 10 }, (_, i) => bf16(Math.cos(3 * i))),
  columns: 1,
};
const product = (i: number) => terms.factors[i] * terms.operand[i];

describe('sums in 16 bits', () => {
  it('are rounded after each tile, in their order, and scaled before or behind', () => {
    const tiles = tileSums(terms, 2);
    const ofTiles = [0, 2, 4, 5, 7, 9].map((first, i, { length }) => {
      const end = i === 2 ? 5 : i === length - 1 ? 10 : first + 2;
      let sum = 0;
      for (let at = first; at < end; at++) sum += product(at);
      return sum;
    });
    expect([...tiles.values]).toEqual(ofTiles);
    const added = (order: readonly number[], scale = 1) =>
      order.reduce((sum, i) => bf16(sum + scale * ofTiles[i]), 0);
    const counts = { heads: 2, tiles: 3 };
    const orders = Object.fromEntries(ordersOf(counts));
    const sums = (order: keyof typeof orders, scales: readonly [number, number]) =>
      narrowSums(tiles, { format: 'bf16', scales }, orders[order])[0];
    expect(sums('ascending', [1, 3])).toBe(3 * added([0, 1, 2, 3, 4, 5]));
    expect(sums('descending', [3, 1])).toBe(added([5, 4, 3, 2, 1, 0], 3));
    expect(sums('heads within tiles', [1, 1])).toBe(added([0, 3, 1, 4, 2, 5]));
    expect(sums('heads apart', [1, 1])).toBe(added([0, 1, 2]) + added([3, 4, 5]));
    expect(sums('heads apart, descending', [1, 1])).toBe(added([2, 1, 0]) + added([5, 4, 3]));
  });

  it('come in all orders of a few tiles, each once, and of more in those that go round', () => {
    const all = anyOrders({ heads: 1, tiles: 4 }).map(String);
    expect(new Set(all).size).toBe(24);
    const round6 = anyOrders({ heads: 2, tiles: 3 });
    expect(round6).toContainEqual([[4, 5, 0, 1, 2, 3]]);
    expect(round6).toContainEqual([[1, 0, 5, 4, 3, 2]]);
    expect(round6).toHaveLength(12);
  });

  it('are no further from the sum of all than the errors that are allowed for', () => {
    const accumulator = { format: 'bf16', scales: [1, 1] } as const;
    const tiles = tileSums(terms, 1);
    for (const [, order] of ordersOf({ heads: 2, tiles: 5 })) {
      const exact = terms.factors.reduce((sum, _, i) => sum + product(i), 0);
      const error = Math.abs(narrowSums(tiles, accumulator, order)[0] - exact);
      const { worst, variance } = narrowErrors(tiles, accumulator, order);
      expect(error).toBeLessThanOrEqual(worst[0]);
      expect(Math.sqrt(variance[0])).toBeLessThan(worst[0]);
    }
  });
});

describe('errors as large as those of sums in 16 bits', () => {
  inTurn('in an order that is not tried are unexplained, and what they are like is said', () => {
    const name = 'dq-many-atomics-in-16-bits';
    const { kernel, example } = faultyBackwards.find((one) => one.name === name)!;
    const problem = example(seededRandom(testSeed));
    const dout = drawDout(seededRandom(testSeed + 1), problem);
    const { dq } = kernel(problem, dout);
    const { diagnosis } = auditGradients(problem, { dout, dq }).verdict;
    expect(diagnosis!.id).toBe('unexplained');
    expect(diagnosis!.evidence.join()).toMatch(/no order of additions that was tried.*bf16/);
  });
});
