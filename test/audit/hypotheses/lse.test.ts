import { describe, expect, it } from 'vitest';
import { lseHypotheses } from '../../../src/audit/diagnosis/hypotheses/lse-faults.js';
import { filledProblem, pseudorandom } from '../../setup/problems.js';
import { contextOfFault, expectPredicts, hypothesesOf } from './context.js';
import { Textbook, type Fault, type RowAt } from './textbook.js';

describe('hypotheses about an LSE', () => {
  const random = pseudorandom(17);
  const problem = filledProblem(
    { batch: 2, heads: 2, queries: 8, keys: 5, dim: 8 },
    () => 2 * random(),
    { scale: 0.4 },
  );
  const scale = 0.4;
  const contextOfLse = (lse: NonNullable<Fault['lse']>) =>
    contextOfFault(problem, { lse }, { onlyLse: true });

  const formulas: Readonly<Record<string, (lse: number, maximum: number) => number>> = {
    'lse-base-2: the LSE is in base 2': (lse) => lse * Math.LOG2E,
    'lse-twice-ln2: the LSE is multiplied by ln 2 twice': (lse) => lse / Math.LOG2E,
    'lse-sign: the LSE has the wrong sign': (lse) => -lse,
    'lse-maximum-only: the LSE is the row maximum, without the logarithm of the row sum': (
      _,
      max,
    ) => max,
    'lse-without-maximum: the LSE is the logarithm of the row sum, without the row maximum': (
      lse,
      max,
    ) => lse - max,
    "lse-maximum-unscaled: the LSE's maximum is that of the unscaled scores": (lse, max) =>
      lse - max + max / scale,
    "lse-mixed-bases: the LSE's logarithm of the row sum is in base 2, its maximum in natural units":
      (lse, max) => max + (lse - max) * Math.LOG2E,
    "lse-mixed-bases: the LSE's maximum is in base 2, its logarithm of the row sum in natural units":
      (lse, max) => max * Math.LOG2E + lse - max,
  };

  it.each(Object.entries(formulas))('predict %s', (name, of) => {
    const context = contextOfLse((lse, { maximum }) => of(lse, maximum));
    const found = hypothesesOf(lseHypotheses, context).get(name)!;
    expectPredicts(found, context, (row) => {
      const { out, lse } = new Textbook(problem).row(row);
      const maximum = Math.max(...new Textbook(problem).scores(row));
      return { out, lse: of(lse, maximum) };
    });
  });

  it('are asked for where the output is right', () => {
    const context = contextOfFault(problem, { lse: (lse) => -lse });
    expect([...lseHypotheses(context)]).toEqual([]);
  });

  it('find a constant, a value that is never written, a short format and other rows', () => {
    const some = (lse: NonNullable<Fault['lse']>, words: string) => {
      const context = contextOfLse(lse);
      const one = [...lseHypotheses(context)].find(({ statement }) => statement.includes(words));
      if (one !== undefined)
        expectPredicts(one, context, (row) => ({
          out: context.sample[row].correct.out,
          lse: context.sample[row].observedLse!,
        }));
      return one?.id ?? null;
    };
    expect(some((lse) => lse + 0.3, 'too high')).toBe('lse-offset');
    expect(some((lse) => lse - 0.3, 'too low')).toBe('lse-offset');
    expect(some((lse) => lse - 8 * Math.LN2, '8 powers of two')).toBe('lse-offset');
    expect(some((lse) => lse - 7.9 * Math.LN2, 'powers of two')).toBeNull();
    expect(some(() => 0.5, 'not written')).toBe('lse-not-written');
    expect(some((lse) => lse, 'not written')).toBeNull();
    const book = new Textbook(problem);
    const of = ({ batch, head, query }: RowAt) => book.row((batch * 2 + head) * 8 + query).lse;
    const behind = (_: number, { at }: { at: RowAt }) =>
      of({ ...at, query: Math.min(at.query + 1, 7) });
    expect(some(behind, 'the query 1 after')).toBe('lse-rows-permuted');
    const before = (_: number, { at }: { at: RowAt }) =>
      of({ ...at, query: Math.max(at.query - 2, 0) });
    const context = contextOfFault(
      problem,
      { lse: before },
      { onlyLse: true, isDamaged: (row) => row % 8 > 1 },
    );
    expect([...lseHypotheses(context)].map(({ statement }) => statement)).toContain(
      'the LSE is that of the query 2 before its own',
    );
  });
});
