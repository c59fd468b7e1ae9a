import { describe, expect, it } from 'vitest';
import {
  describeCorrelations,
  describeDamage,
  nameHeads,
} from '../../../src/audit/diagnosis/describe-damage.js';
import type { DiagnosisInput } from '../../../src/audit/diagnosis/diagnosis.js';
import { measureRows } from '../../../src/audit/diagnosis/row-damage.js';
import { filledProblem } from '../../setup/problems.js';
import { bellShaped } from '../gradients/gradient-case.js';
import { handMadeReference, type HandMade } from '../hand-made.js';
import { contextOf } from '../hypotheses/context.js';
import { Textbook } from '../hypotheses/textbook.js';

const range = (begin: number, end: number) =>
  Array.from({ length: end - begin }, (_, i) => begin + i);

interface Damage {
  readonly shape: Pick<HandMade, 'batch' | 'heads' | 'queries' | 'vDim'>;
  readonly rows: readonly number[];
  /** The error of a column of a damaged row. */
  readonly error?: (column: number) => number;
  readonly sampled?: Int32Array;
  readonly what?: 'LSE';
}

/** What is said of rows that err, of an oracle's output of ones; each row's roundings have a square of vDim. */
function told({ shape, rows, error = () => 100, sampled, what }: Damage): string[] {
  const { vDim = 1 } = shape;
  const reference = handMadeReference({ ...shape, out: () => 1 });
  const values = reference.quantities.out.values.map((x, i) =>
    rows.includes(Math.floor(i / vDim)) ? x + error(i % vDim) : x,
  );
  const count = reference.level.length;
  const input = {
    reference,
    outputs: { out: { values } },
    problem: sampled === undefined ? {} : { rows: { queries: sampled, of: 1000 } },
  } as unknown as DiagnosisInput;
  const noise = new Float64Array(count).fill(vDim);
  return describeDamage(input, { error: new Float64Array(count), noise }, rows, what);
}

describe('damage', () => {
  const shape = { batch: 1, heads: 3, queries: 40 };
  const all = range(0, 120);
  const firstOf = (rows: readonly number[], head = 1) => rows.map((row) => head * 40 + row);

  it('is of all rows, or of so many', () => {
    expect(told({ shape, rows: all })).toEqual(['every row errs by more than rounding explains']);
    expect(told({ shape, rows: all.slice(1) })).toEqual([
      '119 of 120 rows err by more than rounding explains',
    ]);
    expect(told({ shape, rows: [47], what: 'LSE' })).toEqual([
      '1 of 120 rows errs in the LSE by more than rounding explains',
      'only head 1 errs',
      'only query 7 errs',
    ]);
  });

  it('is of some heads', () => {
    const heads = (batch: number, rows: readonly number[]) =>
      told({ shape: { batch, heads: 2, queries: 2 }, rows }).slice(1);
    expect(heads(1, [0, 1])).toEqual(['only head 0 errs']);
    expect(heads(1, [0, 1, 2, 3])).toEqual([]);
    expect(heads(2, [6, 7])).toEqual(['only batch 1, head 1 errs']);
    expect(heads(2, range(0, 6))).toEqual(['only 3 of 4 heads over the batch err']);
    expect(nameHeads([0, 2], { ...handMadeReference(shape).shape })).toBe('heads 0 and 2');
  });

  const queries = (rows: readonly number[]) => told({ shape, rows: firstOf(rows) }).slice(2);

  it.each([
    [[5], 'only query 5 errs'],
    [[5, 9], 'only queries 5 and 9 err'],
    [[1, 5, 9, 30], 'only queries 1, 5, 9 and 30 err'],
    // More than half of the queries that have these places in each 8, and half of the places at most.
    [[3, 11, 19, 27, 35], 'only queries 3 of each 8 err'],
    [range(0, 40).filter((i) => i % 8 < 4), 'only queries 0 to 3 of each 8 err'],
    [range(0, 40).filter((i) => i % 8 < 5), null],
    [range(0, 40).filter((i) => i % 32 < 6), 'only queries 0 to 5 of each 16 err'],
    [range(9, 29), 'only queries 9 to 28 err'],
    // More than nine in ten of those between.
    [[...range(9, 19), 20, ...range(22, 31)], 'only queries 9 to 30 err'],
    [[...range(9, 17), ...range(18, 29)], 'only queries 9 to 28 err'],
    [[...range(9, 17), ...range(19, 29)], null],
    [range(0, 40), null],
  ] as const)('is of the queries %j', (rows, words) => {
    const found = queries(rows);
    expect(found.map((one) => one.replace('errs', 'err'))).toEqual(
      words === null ? [] : [words.replace('errs', 'err')],
    );
  });

  it('is of the queries that a sample has, of which those between are unknown', () => {
    const sampled = Int32Array.from(all, (row) => 10 * (row % 40));
    const found = (rows: readonly number[]) =>
      told({ shape, rows: firstOf(rows), sampled }).slice(2);
    expect(told({ shape, rows: all, sampled })[0]).toContain('every sampled row');
    expect(found([5, 9])).toEqual(['only queries 50 and 90 err']);
    expect(found(range(5, 15))).toEqual([]);
  });

  const columns = (vDim: number, which: readonly number[], size = 100) =>
    told({
      shape: { ...shape, vDim },
      rows: all,
      error: (c) => (which.includes(c) ? size : 0),
    }).slice(1);

  it.each([
    [32, [4], ['only column 4 errs']],
    [32, [1, 9, 17, 30], ['only columns 1, 9, 17 and 30 err']],
    [32, [1, 2, 9, 10, 17, 18, 25, 26], ['only columns 1 and 2 of each 8 err']],
    [32, [1, 9, 17, 25, 3], ['only columns 1 and 3 of each 8 err']],
    [32, [1, 9, 2, 3, 4], []],
    [32, range(0, 32), []],
    [32, [], []],
    [8, [1, 2], []],
  ] as const)('of %d columns is of %j', (vDim, which, words) =>
    expect(columns(vDim, which).map((one) => one.replace('errs', 'err'))).toEqual(
      words.map((one) => one.replace('errs', 'err')),
    ),
  );

  it('shows in columns from six times their rounding on, either way', () => {
    expect(columns(32, [4], 5.99)).toEqual([]);
    expect(columns(32, [4], 6.01)).not.toEqual([]);
    expect(columns(32, [4], -6.01)).not.toEqual([]);
    expect(columns(32, [4], NaN)).not.toEqual([]);
  });
});

describe('the size of damage', () => {
  const problem = filledProblem({ heads: 1, queries: 20, keys: 300, dim: 4 }, bellShaped(5), {
    causal: true,
  });
  const book = new Textbook(problem);
  const largest = (scores: Float64Array) => scores.reduce((a, b) => Math.max(a, b), -Infinity);
  const ofRows: Readonly<Record<string, (row: number) => number>> = {
    'the number of visible keys': (row) => 281 + row,
    'the row maximum': (row) => largest(book.scores(row)),
    "the row maximum's lag over blocks visited last to first": (row) =>
      largest(book.scores(row)) - largest(book.scores(row).subarray(256)),
    "the row maximum's lag over blocks visited first to last": (row) =>
      largest(book.scores(row)) - largest(book.scores(row).subarray(0, 128)),
  };

  /** What is said where the first `rows` rows err by these sizes. */
  function correlated(size: (row: number) => number, rows = 20): string[] {
    const { out, lse } = book.rows();
    const spoilt = out.map((x, i) => x + size(Math.floor(i / 4)));
    const context = contextOf(problem, { out: spoilt, lse }, { isDamaged: (row) => row < rows });
    return describeCorrelations(context, measureRows(context.input));
  }

  it.each(Object.entries(ofRows))('grows or shrinks with %s', (name, of) => {
    const values = range(0, 20).map(of);
    const [low, high] = [Math.min(...values), Math.max(...values)];
    // By more than roundings of rows differ.
    const size = (row: number) => 1e4 ** ((of(row) - low) / (high - low));
    const says = (found: readonly string[], words: string) =>
      found.filter((one) => one.startsWith(`the error ${words} with ${name} (rank`)).length;
    const [grown, shrunk] = [correlated(size), correlated((row) => 1e4 / size(row))];
    expect([says(grown, 'grows'), says(grown, 'shrinks')], grown.join()).toEqual([1, 0]);
    expect([says(shrunk, 'grows'), says(shrunk, 'shrinks')], shrunk.join()).toEqual([0, 1]);
  });

  it('is told of twelve rows at least', () => {
    expect(correlated((row) => 1 + row, 12)).not.toEqual([]);
    expect(correlated((row) => 1 + row, 11)).toEqual([]);
  });
});
