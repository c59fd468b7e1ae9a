import { describe, expect, it } from 'vitest';
import { movedHeadHypotheses } from '../../../src/audit/diagnosis/hypotheses/operands/moved-heads.js';
import {
  columnHypotheses,
  columnPlaceHypotheses,
  headPlaceHypotheses,
  rowHypotheses,
} from '../../../src/audit/diagnosis/hypotheses/placement-faults.js';
import type { Problem } from '../../../src/problem/index.js';
import { filledProblem, pseudorandom, type ProblemFrame } from '../../setup/problems.js';
import { contextOf, contextOfFault, expectPredicts, hypothesesOf } from './context.js';
import { Textbook, type At, type RowAt } from './textbook.js';

const problemOf = (frame: Partial<ProblemFrame> = {}, changes: Partial<Problem> = {}) => {
  const random = pseudorandom(17);
  const sizes = { batch: 2, heads: 3, queries: 4, keys: 5, dim: 8, ...frame };
  return filledProblem(sizes, () => 2 * random(), { scale: 0.4, ...changes });
};

/** The context of exact rows that stand in other places: row by row, column by column. */
function movedContext(
  problem: Problem,
  rowOf: (row: number) => number,
  columnOf = (c: number) => c,
) {
  const book = new Textbook(problem);
  const { out, lse } = book.rows();
  const { vDim } = book.shape;
  const moved = out.map((_, i) => out[rowOf(Math.floor(i / vDim)) * vDim + columnOf(i % vDim)]);
  return contextOf(problem, { out: moved, lse });
}

describe('hypotheses about where columns stand', () => {
  const within = (size: number, from: (inBlock: number) => number) => (c: number) =>
    c - (c % size) + from(c % size);
  const faults = {
    'the columns are rotated by 1 in each 8': within(8, (c) => (c + 1) % 8),
    'the columns are rotated by 7 in each 8': within(8, (c) => (c + 7) % 8),
    'the columns are rotated by 2 in each 8': within(8, (c) => (c + 2) % 8),
    'the columns are rotated by 4 in each 8': within(8, (c) => (c + 4) % 8),
    'columns 1 apart are exchanged in each 8': within(8, (c) => (c % 2 === 0 ? c + 1 : c - 1)),
    'the columns are reversed in each 8': within(8, (c) => 7 - c),
    'the columns are rotated by 1 in each 4': within(4, (c) => (c + 1) % 4),
    'the columns are reversed in each 4': within(4, (c) => 3 - c),
  };

  it('predict regular orders', () => {
    const problem = problemOf();
    const context = contextOfFault(problem);
    const found = [...columnHypotheses(context)];
    const images = new Set<string>();
    for (const one of found) {
      const { out } = one.predict(context.sample[0])!;
      images.add(out.join());
    }
    // No order goes by two names.
    expect(images.size).toBe(found.length);
    const { out, limit } = context.sample[3].correct;
    for (const from of Object.values(faults)) {
      const alike = found.filter((one) =>
        one.predict(context.sample[3])!.out.every((x, c) => x === out[from(c)]),
      );
      expect(alike.length).toBe(1);
      const predicted = alike[0].predict(context.sample[3])!;
      expect([...predicted.limit]).toEqual([...limit].map((_, c) => limit[from(c)]));
    }
    expect([...columnHypotheses(contextOfFault(problemOf({ dim: 3 })))]).toEqual([]);
  });

  it('find the source of each column that errs, and columns of zeros', () => {
    const problem = problemOf();
    const swap = (c: number) => (c === 2 ? 5 : c === 5 ? 2 : c);
    const swapped = movedContext(problem, (row) => row, swap);
    const [exchanged] = columnPlaceHypotheses(swapped);
    expect(exchanged.statement).toBe('columns 2 and 5 are exchanged');
    expectPredicts(exchanged, swapped, (row) => ({
      ...swapped.sample[row],
      lse: NaN,
      out: swapped.sample[row].observed,
    }));
    const many = movedContext(
      problem,
      (row) => row,
      (c) => (c + 3) % 8,
    );
    const [moved] = columnPlaceHypotheses(many);
    expect(moved.statement).toContain(
      '0 that of 3, 1 that of 4, 2 that of 5, 3 that of 6 and 4 more',
    );
    expectPredicts(moved, many, (row) => ({ lse: NaN, out: many.sample[row].observed }));
    const { out, lse } = new Textbook(problem).rows();
    const zeroed = contextOf(problem, { out: out.map((x, i) => (i % 8 === 6 ? 0 : x)), lse });
    const [zeros, ...others] = columnPlaceHypotheses(zeroed);
    expect(others).toEqual([]);
    expect(zeros.id).toBe('columns-not-written');
    expectPredicts(zeros, zeroed, (row) => ({ lse: NaN, out: zeroed.sample[row].observed }));
    const nothing = contextOf(problem, { out: out.map(() => 0), lse });
    expect([...columnPlaceHypotheses(nothing)]).toEqual([]);
    expect([...columnPlaceHypotheses(contextOf(problem, { out, lse }))]).toEqual([]);
  });
});

describe('hypotheses about where rows and heads stand', () => {
  const [heads, queries] = [3, 4];

  it('find the query that a row is of, by one distance or one by one', () => {
    const problem = problemOf();
    for (const by of [1, -2]) {
      const source = (row: number) => {
        const query = (row % queries) + by;
        return query >= 0 && query < queries ? row + by : row;
      };
      const context = movedContext(problem, source);
      const isMoved = ({ row }: { row: number }) => source(row) !== row;
      const sample = context.sample.filter(isMoved).map((row) => row);
      const found = [...rowHypotheses({ ...context, sample })];
      const one = found.find(({ statement }) =>
        statement.includes(`the query ${Math.abs(by)} ${by > 0 ? 'after' : 'before'}`),
      )!;
      expectPredicts(one, context, (row) => ({ lse: NaN, out: context.sample[row].observed }));
    }
    const swap = (row: number) => (row === 5 ? 7 : row === 7 ? 5 : row);
    const swapped = movedContext(problem, swap);
    const sample = swapped.sample.filter(({ row }) => swap(row) !== row);
    const exchanged = [...rowHypotheses({ ...swapped, sample })].find(({ statement }) =>
      statement.includes('exchanged'),
    )!;
    expect(exchanged.statement).toBe('the outputs of queries 1, 3 are exchanged');
    expectPredicts(exchanged, swapped, (row) => ({ lse: NaN, out: swapped.sample[row].observed }));
    const others = movedContext(problem, (row) => (row === 5 ? 7 : row));
    const [, held] = rowHypotheses({
      ...others,
      sample: others.sample.filter((one) => one.row === 5),
    });
    expect(held.statement).toContain('exchanged');
  });

  it('rotate rows within blocks of queries', () => {
    const problem = problemOf({ queries: 19, heads: 1, batch: 1, dim: 2 });
    for (const [size, shift] of [
      [8, 1],
      [8, 7],
      [8, 4],
      [16, 14],
    ] as const) {
      const context = movedContext(problem, (row) => {
        const first = row - (row % size);
        return first + (((row % size) + shift) % Math.min(size, 19 - first));
      });
      const one = hypothesesOf(rowHypotheses, context).get(
        `rows-permuted: rows are rotated by ${shift} in each ${size}`,
      )!;
      expectPredicts(one, context, (row) => ({ lse: NaN, out: context.sample[row].observed }));
    }
    const names = [...rowHypotheses(contextOfFault(problem))].map(({ statement }) => statement);
    expect(names.some((name) => name.endsWith('in each 16'))).toBe(true);
    expect(names.some((name) => name.endsWith('in each 32'))).toBe(false);
  });

  it('move whole heads', () => {
    const problem = problemOf();
    const head = (batch: number, h: number) => batch * heads + h;
    const faults: Readonly<Record<string, (b: number, h: number) => number>> = {
      'each head holds the output of the next': (b, h) => head(b, (h + 1) % heads),
      'each head holds the output of the one before': (b, h) => head(b, (h + 2) % heads),
      'the heads are in reverse order': (b, h) => head(b, heads - 1 - h),
      'heads and batch entries are transposed': (b, h) => {
        const flat = head(b, h);
        return head(flat % 2, Math.floor(flat / 2));
      },
      'each batch entry holds the output of the next': (b, h) => head((b + 1) % 2, h),
    };
    for (const [statement, from] of Object.entries(faults)) {
      const context = movedContext(problem, (row) => {
        const flat = Math.floor(row / queries);
        return from(Math.floor(flat / heads), flat % heads) * queries + (row % queries);
      });
      const found = hypothesesOf(headPlaceHypotheses, context);
      expect(found.size).toBe(5);
      expectPredicts(found.get(`heads-permuted: ${statement}`)!, context, (row) => ({
        lse: NaN,
        out: context.sample[row].observed,
      }));
    }
    const alone = contextOfFault(problemOf({ batch: 1, heads: 1 }));
    expect([...headPlaceHypotheses(alone), ...movedHeadHypotheses(alone)]).toEqual([]);
  });

  it('find the head that each is of, in the output and in the operands', () => {
    const problem = problemOf({ heads: 6, kvHeads: 3, batch: 2 });
    const book = new Textbook(problem);
    const [ofHeads, ofKv] = [
      [0, 4, 2, 5, 1, 3],
      [1, 2, 0],
    ];
    const output = movedContext(problem, (row) => {
      const flat = Math.floor(row / queries);
      return (flat - (flat % 6) + ofHeads[flat % 6]) * queries + (row % queries);
    });
    const [held] = movedHeadHypotheses(output);
    expect(held.statement).toBe(
      'heads hold the output of others: head 1 that of 4, head 3 that of 5, head 4 that of 1, head 5 that of 3',
    );
    expectPredicts(held, output, (row) => ({ lse: NaN, out: output.sample[row].observed }));
    const k = (at: At, t: number) => book.k(at.batch, ofKv[at.kvHead], at.key, t);
    const v = (at: At, c: number) => book.v(at.batch, ofKv[at.kvHead], at.key, c);
    const q = (at: RowAt, t: number) => book.q(at.batch, ofHeads[at.head], at.query, t);
    for (const [words, fault] of [
      ['K and V are read', { k, v }],
      ['K is read', { k }],
      ['V is read', { v }],
      ['Q is read', { q }],
    ] as const) {
      const context = contextOfFault(problem, fault);
      const one = [...movedHeadHypotheses(context)].find(({ statement }) =>
        statement.startsWith(words),
      )!;
      expectPredicts(one, context, (row) => book.row(row, fault));
    }
    expect([...movedHeadHypotheses(contextOfFault(problem))]).toEqual([]);
  });
});
