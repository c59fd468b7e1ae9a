import { describe, expect, it } from 'vitest';
import { attentionOracle } from '../../oracles/index.js';
import { compareOutputs } from '../../src/audit/index.js';
import { filledProblem, pseudorandom } from '../setup/problems.js';

const frame = {
  format: 'bf16',
  batch: 2,
  heads: 2,
  kvHeads: 2,
  queries: 70,
  keys: 24,
  dim: 4,
} as const;
const problem = filledProblem(frame, pseudorandom(3));
const reference = attentionOracle(problem);
const { values, magnitude } = reference.quantities.out;
const rows = frame.batch * frame.heads * frame.queries;
const apart = Int32Array.from({ length: rows }, (_, row) => row);

/** The exact output with errors of so large a share of the magnitude. */
function noisy(seed: number, size: number, random = pseudorandom(seed)): Float64Array {
  return values.map((x, i) => x + size * random() * magnitude[i]);
}

describe('where two outputs differ', () => {
  it('is nowhere where they are the same, NaNs included', () => {
    const same = values.with(3, NaN);
    const found = compareOutputs(reference, { unit: apart }, same, same.slice());
    expect(found).toMatchObject({
      differing: 0,
      differingRows: 0,
      differingTiles: 0,
      differingHeads: [],
      first: null,
      largest: null,
    });
    expect(found.closeness).toMatchObject({ units: 0, pValue: 1 });
  });

  it('is counted in elements, rows, tiles of 64 queries and heads', () => {
    const changed = values.slice();
    // Head 1 of batch 0, queries 5 and 66; head 1 of batch 1, query 66.
    const row = (head: number, query: number) => head * frame.queries + query;
    changed[4 * row(1, 5) + 2] += 0.5;
    changed[4 * row(1, 66)] += 0.25;
    changed[4 * row(1, 66) + 1] = NaN;
    changed[4 * row(3, 66) + 3] -= 4;
    expect(compareOutputs(reference, { unit: apart }, values, changed)).toMatchObject({
      elements: 4 * rows,
      differing: 4,
      rows,
      differingRows: 3,
      tiles: 8,
      differingTiles: 3,
      heads: 4,
      differingHeads: [1, 3],
      first: { batch: 0, head: 1, query: 5 },
      largest: { difference: 4, at: { batch: 1, head: 1, query: 66, column: 3 } },
    });
  });

  it('is where rows of a sample are in the whole problem', () => {
    // Rows 0 to 69 of each head are every hundredth.
    const queries = Int32Array.from({ length: rows }, (_, row) => 100 * (row % frame.queries));
    const selection = { queries, of: 7000 };
    const changed = values.slice();
    changed[4 * 12] += 1;
    changed[4 * 13] += 1;
    expect(compareOutputs(reference, { unit: apart, selection }, values, changed)).toMatchObject({
      differingRows: 2,
      tiles: 4 * 70,
      differingTiles: 2,
      first: { batch: 0, head: 0, query: 1200 },
      largest: { at: { query: 1200, column: 0 } },
    });
  });

  it('tells a zero of another sign', () => {
    const zero = values.with(0, 0);
    const found = compareOutputs(reference, { unit: apart }, zero, zero.with(0, -0));
    expect(found).toMatchObject({ differing: 1, largest: { difference: 0 } });
  });
});

describe('which of two outputs is closer', () => {
  const p = (first: Float64Array, second: Float64Array, unit = apart) =>
    compareOutputs(reference, { unit }, first, second).closeness;

  it('is the one with the smaller errors, whichever comes first', () => {
    const [small, large] = [noisy(1, 1e-3), noisy(2, 2e-3)];
    const found = p(small, large);
    expect(found.pValue).toBeLessThan(1e-20);
    expect(found.rms[1] / found.rms[0]).toBeCloseTo(2, 0);
    expect(found.firstCloser).toBeGreaterThan(0.9 * rows);
    const turned = p(large, small);
    expect(turned.pValue).toBe(found.pValue);
    expect(turned.rms).toEqual([...found.rms].reverse());
    expect(turned.firstCloser).toBe(found.positive);
  });

  it('is neither of errors of one distribution', () => {
    const random = pseudorandom(17);
    const probabilities = Array.from(
      { length: 40 },
      () => p(noisy(0, 1e-3, random), noisy(0, 1e-3, random)).pValue,
    );
    // Eight of 40 below 5 % have a probability of 1e-3, one below 1e-4 has one of 4e-3.
    expect(probabilities.filter((one) => one < 0.05).length).toBeLessThan(8);
    expect(Math.min(...probabilities)).toBeGreaterThan(1e-4);
  });

  it('counts rows that err alike once', () => {
    const [small, large] = [noisy(1, 1e-3), noisy(2, 2e-3)];
    const pairs = apart.map((row) => Math.floor(row / 20));
    const found = p(small, large, pairs);
    expect(found.units).toBe(rows / 20);
    expect(found.rows).toBe(rows);
    expect(found.pValue).toBeGreaterThan(p(small, large).pValue);
    // Heads that repeat one another have the same errors to the last bit, and are one.
    const half = values.length / 2;
    const twice = (output: Float64Array) =>
      Float64Array.from([...output.subarray(0, half), ...output.subarray(0, half)]);
    const repeated = {
      ...reference,
      quantities: {
        ...reference.quantities,
        out: { ...reference.quantities.out, values: twice(values), magnitude: twice(magnitude) },
      },
    };
    const doubled = compareOutputs(repeated, { unit: apart }, twice(small), twice(large)).closeness;
    expect(doubled.units).toBe(rows / 2);
  });

  it('takes an output that is not finite for the farther one, and rows that are not so exactly for none', () => {
    const broken = noisy(1, 1e-3).fill(NaN, 0, 4 * 30);
    const found = p(broken, values);
    expect(found.rms).toEqual([Infinity, 0]);
    expect(found.firstCloser).toBe(0);
    const special = {
      ...reference,
      quantities: {
        ...reference.quantities,
        out: { ...reference.quantities.out, values: values.slice().fill(NaN, 0, 4 * 30) },
      },
    };
    expect(compareOutputs(special, { unit: apart }, broken, noisy(2, 1e-3)).closeness.rows).toBe(
      rows - 30,
    );
  });
});
