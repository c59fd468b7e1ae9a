import { describe, expect, it } from 'vitest';
import { WorkingMemories } from '../../../oracles/index.js';
import type { KernelBound } from '../../../src/audit/bounds/index.js';
import { NearlyEqual } from '../../../src/audit/structure/error-pool.js';
import { createInstruments } from '../../../src/audit/structure/instruments.js';
import { RowElements } from '../../../src/audit/structure/row-elements.js';
import { formats, ulp } from '../../../src/formats/index.js';
import { filledProblem, pseudorandom } from '../../setup/problems.js';
import { handMadeReference } from '../hand-made.js';

const [heads, queries, keys, vDim] = [4, 3, 5, 6];
const rows = heads * queries;

/** Instruments of outputs and values of a size, and what they are made from; errors within a kernel are `addition` each. */
function made(seed: number, size: number, addition: number) {
  const random = pseudorandom(seed);
  const frame = { heads, kvHeads: 2, queries, keys, dim: 2, vDim, format: 'fp64' } as const;
  const fills = { q: () => 1, k: () => 1, v: () => size * (1.5 + random()) };
  const problem = filledProblem(frame, fills);
  const plain = handMadeReference({
    heads,
    queries,
    vDim,
    out: () => size * (1.5 + random()) * (random() < 0 ? -1 : 1),
    level: (row) => (row === 4 ? 'special' : 'fp64'),
  });
  const reference = {
    ...plain,
    shape: { ...plain.shape, kvHeads: 2, groupSize: 2, keys },
  };
  const heaviest = Int32Array.from({ length: rows }, (_, row) => (row === 7 ? -1 : row % keys));
  const survey = {
    heaviest,
    squares: new Float64Array(rows).fill(0),
    clustered: new Uint8Array(rows),
  };
  const bound = {
    row: () => ({ keys: 8, addition, typicalWeight: 0 }),
  } as unknown as KernelBound;
  const make = createInstruments({ problem, reference, bound, weightFormat: 'bf16' }, survey);
  const { values } = reference.quantities.out;
  const groups = new NearlyEqual(10, -40, 20);
  const rules = { vDim, outputFormat: 'fp64', outputGroups: groups } as const;
  const names = ['scale', 'lightScale', 'bias', 'truncation'] as const;
  const instruments = RowElements.with(new WorkingMemories(), rules, (elements) => {
    const directions = names.map(() => new Float64Array(rows * vDim));
    const patterns = names.map(() => new Float64Array(rows * vDim));
    // Blocks as they come: one of 5 rows, and the rest.
    for (const [first, count] of [
      [0, 5],
      [5, rows - 5],
    ]) {
      elements.load(first, count, reference, values);
      make(elements, first, count);
      names.forEach((_, d) => {
        directions[d].set(elements.directions[d].subarray(0, count * vDim), first * vDim);
        patterns[d].set(elements.patterns[d].subarray(0, count * vDim), first * vDim);
      });
    }
    const of = (d: number) => ({ direction: directions[d], pattern: patterns[d] });
    return { scale: of(0), lightScale: of(1), bias: of(2), truncation: of(3) };
  });
  return { problem, heaviest, values, instruments };
}

const dot = (a: ArrayLike<number>, b: ArrayLike<number>) =>
  Array.from(a).reduce((sum, x, i) => sum + x * b[i], 0);

describe('the directions of the structure tests', () => {
  it('weigh elements by their noise; the light one is free of the value of the heaviest key', () => {
    // The noise is √(8 a²/8)·|O|, so that an element weighs 1/(a·O)².
    const addition = 2 ** -10;
    const { problem, heaviest, values, instruments } = made(5, 1, addition);
    const { scale, lightScale, bias, truncation } = instruments;
    expect(scale.pattern).toEqual(values);
    expect(lightScale.pattern).toEqual(values);
    expect(bias.pattern.every((x) => x === 1)).toBe(true);
    for (let row = 0; row < rows; row++) {
      const of = ({ direction }: typeof scale) => direction.subarray(row * vDim, (row + 1) * vDim);
      if (row === 4 || row === 7) {
        for (const one of Object.values(instruments))
          expect([...of(one)].every((x) => x === 0)).toBe(true);
        continue;
      }
      const own = values.subarray(row * vDim, (row + 1) * vDim);
      own.forEach((x, c) => {
        expect(of(bias)[c] * (addition * x) ** 2).toBeCloseTo(1, 9);
        expect(of(scale)[c] * addition ** 2 * x).toBeCloseTo(1, 9);
        const half = (ulp(formats.fp64, x) / 2) * Math.sign(x);
        expect(truncation.pattern[row * vDim + c]).toBe(half);
        expect((of(truncation)[c] / half) * (addition * x) ** 2).toBeCloseTo(1, 9);
      });
      const kv = Math.floor(Math.floor(row / queries) / 2);
      const from = (kv * keys + heaviest[row]) * vDim;
      const value = problem.v.data.slice(from, from + vDim) as Float64Array;
      // What is left is at right angles to the value, and what was taken is a multiple of it.
      const length = Math.sqrt(dot(of(scale), of(scale)) * dot(value, value));
      expect(Math.abs(dot(of(lightScale), value)) / length).toBeLessThan(1e-12);
      const taken = of(scale).map((x, c) => (x - of(lightScale)[c]) / value[c]);
      taken.forEach((x) => expect(x / taken[0]).toBeCloseTo(1, 9));
      expect(dot(of(lightScale), of(lightScale))).toBeGreaterThan(0);
    }
  });

  it('are numbers whatever the size of the values, and leave the value in where its square is lost', () => {
    for (const size of [0, 2 ** -1060, 2 ** -535, 2 ** -500, 2 ** 500, 2 ** 600]) {
      const { instruments } = made(6, size, 2 ** -20);
      for (const { direction } of Object.values(instruments))
        expect([...direction].every(Number.isFinite), `${size}`).toBe(true);
    }
    // d·v / v² leaves the range of fp64, d² does not.
    const { scale, lightScale } = made(6, 2 ** -535, 2 ** 14).instruments;
    expect(scale.direction.some((x) => x !== 0)).toBe(true);
    expect([...lightScale.direction]).toEqual([...scale.direction]);
  });
});
