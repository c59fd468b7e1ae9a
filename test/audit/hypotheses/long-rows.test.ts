import { describe, expect, it } from 'vitest';
import type {
  Hypothesis,
  HypothesisContext,
  HypothesisFamily,
} from '../../../src/audit/diagnosis/hypothesis.js';
import { onlineSoftmaxHypotheses } from '../../../src/audit/diagnosis/hypotheses/online-softmax-faults.js';
import { rescaleHypotheses } from '../../../src/audit/diagnosis/long-rows/rescales-of-cells.js';
import { rowSumHypotheses } from '../../../src/audit/diagnosis/hypotheses/row-sum-faults.js';
import { splitHypotheses } from '../../../src/audit/diagnosis/hypotheses/split-faults.js';
import { keyTileHypotheses } from '../../../src/audit/diagnosis/hypotheses/tiles/key-tile-faults.js';
import { ofAllColumns, ofColumns } from '../../../src/audit/diagnosis/long-rows/long-rows.js';
import { createValueSums, keysAtOnce } from '../../../src/audit/diagnosis/long-rows/value-sums.js';
import { ValueColumns } from '../../../src/audit/diagnosis/long-rows/value-columns.js';
import { addWeighed, emptySums, softmaxRow } from '../../../src/audit/diagnosis/prediction.js';
import { filledProblem, pseudorandom } from '../../setup/problems.js';
import { contextOfFault, hypothesesOf } from './context.js';
import type { At, Fault } from './textbook.js';

const random = pseudorandom(11);

/** Problems whose last stretch of 16 keys is and is not whole, with rows that see all keys and that do not. */
const problems = [300, 320].flatMap((keys) =>
  [false, true].map((causal) => ({
    name: `${keys} keys${causal ? ', causal' : ''}`,
    problem: filledProblem({ heads: 1, queries: 3, keys, dim: 8 }, () => 3 * random(), { causal }),
  })),
);

const families: readonly (readonly [string, HypothesisFamily, HypothesisFamily])[] = [
  ['a tile of keys', keyTileHypotheses, keyTileHypotheses],
  ['splits', splitHypotheses, splitHypotheses],
  ['rescales', onlineSoftmaxHypotheses, rescaleHypotheses],
];

const near = (a: number, b: number, size: number) => Math.abs(a - b) <= 1e-11 * size;

/** Throws unless two predictions of rows are the same up to fp64. */
function expectSame(
  of: Hypothesis,
  as: Hypothesis,
  rows: readonly (readonly [unknown, unknown])[],
) {
  for (const [row, plain] of rows) {
    const found = of.predict(row as never);
    const expected = as.predict(plain as never);
    if (expected === null || found === null) {
      expect(found, of.statement).toBe(expected);
      continue;
    }
    const size = Math.max(1, ...expected.out.map(Math.abs));
    expected.out.forEach((x, c) => {
      if (!near(found.out[c], x, size)) expect.fail(`${of.statement}: ${found.out[c]}, not ${x}`);
      expect(near(found.limit[c], expected.limit[c], 1)).toBe(true);
    });
    if (Number.isFinite(expected.lse)) expect(found.lse).toBeCloseTo(expected.lse, 10);
    // Two keys with one value count once more than one with both weights.
    expect(found.noise).toBeLessThan(2 * expected.noise + 1e-30);
    expect(found.noise).toBeGreaterThan(expected.noise * (1 - 1e-6));
  }
}

/** Faults of keys 64 to 79, which make those that look like them candidates. */
const [gone, twice] = [0, 2].map(
  (factor) =>
    ({ key }: At) =>
      key >= 64 && key < 80 ? factor : 1,
);
const tileFaults: readonly Fault[] = [
  { inOutput: gone },
  { inOutput: gone, inSum: gone },
  { inOutput: twice, inSum: twice },
  { inSum: gone },
];

/** Throws unless a family has the same results of a context whose V is not held. */
function expectSameFamily(
  plain: HypothesisFamily,
  long: HypothesisFamily,
  context: HypothesisContext,
): void {
  const errors = new Float64Array(8).map((_x, c) => (c * 5) % 8);
  const values = new ValueColumns(context.input.problem, context.shape, errors);
  const narrow = ofColumns(context, values);
  expect(values.columns).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  const expected = hypothesesOf(plain, context);
  const found = hypothesesOf(long, narrow);
  expect(found.size).toBeGreaterThan(10);
  for (const [name, hypothesis] of found) {
    const own = expected.get(name);
    // Candidates that explain nothing are in the order of their roundings.
    if (own === undefined) continue;
    const pairs = context.sample.map((row, i) => [narrow.sample[i], row] as const);
    expectSame(hypothesis, own, pairs);
    expectSame(
      ofAllColumns(hypothesis, values),
      own,
      context.sample.map((row) => [row, row] as const),
    );
  }
  const shared = [...found.keys()].filter((name) => expected.has(name));
  expect(shared.length).toBeGreaterThan(found.size / 2);
}

describe.each(problems)('rows of $name as rows that are too long to hold V', ({ problem }) => {
  it.each(families)('have the results of faults of %s', (_, plain, long) => {
    for (const fault of tileFaults)
      expectSameFamily(plain, long, contextOfFault(problem, fault, { hasLse: false }));
  });
  it('have the results of row sums over part of the keys', () => {
    const context = contextOfFault(problem, { inSum: ({ key }) => (key % 4 === 1 ? 0 : 1) });
    const expected = hypothesesOf(rowSumHypotheses, context);
    const found = hypothesesOf(rowSumHypotheses, { ...context, isLong: true });
    expect([...found.keys()]).toEqual([...expected.keys()]);
    const rows = context.sample.map((row) => [row, row] as const);
    for (const [name, hypothesis] of found) expectSame(hypothesis, expected.get(name)!, rows);
  });
});

it('the columns that err most are held, so many that they take 32 MiB', () => {
  const { shape, input } = contextOfFault(problems[0].problem);
  const errors = Float64Array.of(0, 5, 1, 4, 2, 3, 9, 0.5);
  const columnsOf = (keys: number) =>
    new ValueColumns(input.problem, { ...shape, keys }, errors).columns;
  expect(columnsOf(2 ** 20)).toEqual([1, 3, 5, 6]);
  expect(columnsOf(2 ** 20 + 1)).toEqual([1, 6]);
  expect(columnsOf(2 ** 24)).toEqual([6]);
});

it('what weights of the held columns give is known of all columns', () => {
  const { problem } = problems[0];
  const context = contextOfFault(problem);
  const values = new ValueColumns(problem, context.shape, new Float64Array(8));
  const [row] = context.sample;
  const weighted = softmaxRow(context.reader.scores(row.row), values.held(0));
  const all = values.allSums(weighted);
  const plain = emptySums(8);
  addWeighed(plain, weighted.weights, context.reader.values(0), 8);
  all.out.forEach((x, c) => expect(near(x, plain.out[c], 1)).toBe(true));
  all.magnitude.forEach((x, c) => expect(near(x, plain.magnitude[c], 1)).toBe(true));
  expect(near(all.squares, plain.squares, plain.squares)).toBe(true);
  expect(() => values.allSums({ ...weighted, values: new Float64Array(300 * 8) })).toThrow(
    'not of the held',
  );
});

it('the loop adds weighted values as their definition does', () => {
  for (const vDim of [4, 8, 24, 128]) {
    const sums = createValueSums(vDim);
    for (let run = 0; run < 2; run++) {
      sums.clear();
      const plain = emptySums(vDim);
      for (const count of [keysAtOnce, 1, 7]) {
        const weights = Float64Array.from({ length: count }, () => random() - 0.5);
        for (let at = 0; at < count * vDim; at++) sums.room[at] = random() - 0.5;
        addWeighed(plain, weights, sums.room.slice(), vDim);
        sums.add(weights);
      }
      const found = sums.sums();
      found.out.forEach((x, c) => expect(near(x, plain.out[c], 1)).toBe(true));
      found.magnitude.forEach((x, c) => expect(near(x, plain.magnitude[c], 1)).toBe(true));
      expect(near(found.squares, plain.squares, 1)).toBe(true);
    }
  }
});
