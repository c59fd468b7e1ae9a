import { describe, expect, it } from 'vitest';
import {
  simplerElements,
  simplerRows,
  simplerTensors,
  valueComplexity,
} from '../../../properties/problems/value-shrinker.js';

const upTo = (count: number) => Array.from({ length: count }, (_, i) => i);

describe('the simpler of two numbers', () => {
  it('is 0, 1, a small whole number, a power of two, a whole number, any, ∞, NaN; positive before negative', () => {
    const ascending = [
      0,
      -0,
      1,
      -1,
      2,
      -2,
      3,
      5,
      8,
      0.5,
      2 ** 9,
      2 ** -10,
      2 ** 60,
      9,
      1e6,
      -9,
      0.75,
      -6.5,
      Infinity,
      -Infinity,
      NaN,
    ];
    const complexity = ascending.map(valueComplexity);
    expect(complexity).toEqual([...complexity].sort((a, b) => a - b));
    const alike = [
      [9, 1e6],
      [0.75, 6.5],
      [2 ** 9, 2 ** -9],
    ];
    for (const [a, b] of alike) expect(valueComplexity(a)).toBe(valueComplexity(b));
    const strictly = [0, -0, 1, -1, 2, 3, 8, 0.5, 2 ** 60, 9, 0.75, Infinity, -Infinity, NaN].map(
      valueComplexity,
    );
    strictly.forEach((x, i) => i > 0 && expect(x).toBeGreaterThan(strictly[i - 1]));
  });

  it.each([
    [6.5, [0, 1, 3, 6, 4, 7]],
    [-6.5, [0, 1, -1, 6.5, -3, -6, -4, -7]],
    [100, [0, 1, 64]],
    [64, [0, 1, 8]],
    [2 ** -10, [0, 1, 2 ** -5]],
    [0.75, [0, 1, 0.5]],
    [-1, [0, 1]],
    [-0, []],
    [3, [0, 1, 2]],
    [8, [0, 1, 4, 2]],
    [8.5, [0, 1, 8]],
    [1, [0]],
    [Infinity, [0, 1]],
    [-Infinity, [0, 1, -1, Infinity]],
    [NaN, [0, 1]],
  ])('of %d alone: %j', (x, simpler) => {
    const values = Float64Array.of(0, x, 1);
    const found = [...simplerElements(values, 0)].filter(({ position }) => position === 1);
    expect(found.map(({ values: [, y] }) => y)).toEqual(simpler);
    for (const { values: other } of found) expect([other[0], other[2]]).toEqual([0, 1]);
  });

  it('is looked for from the last success on, element by element, unless there are very many', () => {
    const values = Float64Array.of(1, 1, 0, 1);
    const positions = (from: number) =>
      [...simplerElements(values, from)].map(({ position }) => position);
    expect([positions(0), positions(1), positions(3)]).toEqual([
      [0, 1, 3],
      [1, 3, 0],
      [3, 0, 1],
    ]);
    const many = (count: number) => new Float64Array(200).fill(5, 0, count).fill(1, count);
    expect([...simplerElements(many(64), 0)].length).toBeGreaterThan(0);
    expect([...simplerElements(many(65), 0)]).toEqual([]);
  });

  it('of a whole tensor: each element where it is simpler, the tensor where it is', () => {
    const of = (...numbers: number[]) =>
      [...simplerTensors(Float64Array.from(numbers))].map(({ values, position }) => [
        position,
        ...values,
      ]);
    expect(of(0, 3, -2.5)).toEqual([
      [0, 0, 0, 0],
      [0, 0, 1, 1],
      [0, 0, 1, -1],
      [0, 0, 3, 2.5],
      [0, 0, 1, -1],
      [0, 0, 3, -2],
      [0, 0, 2, -2],
      [0, 0, 3, -3],
    ]);
    // What is not finite stays in all that does not replace it.
    expect(of(Infinity, -Infinity, NaN, 100)).toEqual([
      [0, 0, 0, 0, 0],
      [0, 1, 1, 1, 1],
      [0, 1, -1, 0, 1],
      [0, Infinity, Infinity, NaN, 100],
      [0, 1, -1, 0, 64],
    ]);
    expect(of(0, 0)).toEqual([]);
    expect(of(1, 0)[0]).toEqual([0, 0, 0]);
  });

  it('of runs of rows: halves, quarters and so on to single ones, 0 and then 1', () => {
    const runs = (rows: number, from = 0) =>
      [...simplerRows(new Float64Array(2 * rows).fill(5), 2, from)].map(({ values, position }) => {
        const changed = upTo(rows).filter((row) => values[2 * row] !== 5);
        for (const row of changed) expect(values[2 * row + 1]).toBe(values[2 * row]);
        return { position, x: values[2 * changed[0]], rows: changed };
      });
    const five = [upTo(3), [3, 4], [0, 1], [2, 3], [4], [0], [1], [2], [3], [4]];
    const both = (order: readonly number[]) =>
      order.flatMap((position) => [0, 1].map((x) => ({ position, x, rows: five[position] })));
    expect(runs(5)).toEqual(both(upTo(10)));
    expect(runs(5, 7)).toEqual(both([7, 8, 9, ...upTo(7)]));
    expect(runs(1)).toEqual([]);
    expect(runs(2).map(({ rows }) => rows)).toEqual([[0], [0], [1], [1]]);
    // 600 rows: 300, 150, 75, 38, 19, 10, 5, 3; two at a time are too many.
    expect(Math.min(...runs(600).map(({ rows }) => rows.length))).toBe(3);
    expect(
      [...simplerRows(Float64Array.of(0, 0, 1, 1), 1, 0)].map(({ values }) => [...values]),
    ).toEqual([
      [0, 0, 0, 0],
      [0, 0, 0, 1],
      [0, 0, 1, 0],
    ]);
  });
});
