import { describe, expect, it } from 'vitest';
import { viewHypotheses } from '../../../src/audit/diagnosis/hypotheses/operands/viewed-memory.js';
import type { Problem } from '../../../src/problem/index.js';
import { testSeed } from '../../setup/effort.js';
import { filledProblem, pseudorandom, type ProblemFrame } from '../../setup/problems.js';
import { contextOfFault, expectPredicts } from './context.js';
import { Textbook, type At, type RowAt } from './textbook.js';

const problemOf = (frame: Partial<ProblemFrame> = {}, changes: Partial<Problem> = {}) => {
  const random = pseudorandom(testSeed + 17);
  const sizes = { batch: 2, heads: 4, kvHeads: 2, queries: 3, keys: 5, dim: 8, ...frame };
  return filledProblem(sizes, () => 2 * random(), { scale: 0.4, ...changes });
};

type Move = (head: number, row: number) => readonly [head: number, row: number];

/** A row of [batch, heads, rows] as it is where the memory is read with heads and rows exchanged. */
const views = (heads: number, rows: number): Record<string, Move> => ({
  'as if it were [batch, heads, seqlen, dim]': (head, row) => {
    const flat = head * rows + row;
    return [flat % heads, Math.floor(flat / heads)];
  },
  'as if it were [batch, seqlen, heads, dim]': (head, row) => {
    const flat = row * heads + head;
    return [Math.floor(flat / rows), flat % rows];
  },
});

const ways = Object.keys(views(1, 1));

describe('a memory that is viewed where it is to be transposed', () => {
  describe.each(ways)('%s', (way) => {
    it.each<[string, Partial<Problem>]>([
      ['plain', {}],
      ['causal', { causal: true, softcap: 0.9 }],
    ])('%s', (_, changes) => {
      const problem = problemOf({}, changes);
      const book = new Textbook(problem);
      const context = contextOfFault(problem);
      const found = [...viewHypotheses(context)].filter(({ statement }) => statement.includes(way));
      expect(found.map(({ id }) => id)).toEqual(found.map(() => 'view-for-transpose'));
      const [ofQ, ofK] = [views(4, 3)[way], views(2, 5)[way]];
      const q = (at: RowAt, t: number) => {
        const [head, query] = ofQ(at.head, at.query);
        return book.q(at.batch, head, query, t);
      };
      const k = (at: At, t: number) => {
        const [head, key] = ofK(at.kvHead, at.key);
        return book.k(at.batch, head, key, t);
      };
      const v = (at: At, c: number) => {
        const [head, key] = ofK(at.kvHead, at.key);
        return book.v(at.batch, head, key, c);
      };
      /** The row whose output is written to another: that which is read from there. */
      const readFrom = (row: number) => {
        const { batch, head, query } = book.rowAt(row);
        for (let one = 0; one < 12; one++) {
          const [h, s] = [Math.floor(one / 3), one % 3];
          const [fromHead, fromQuery] = ofQ(h, s);
          if (fromHead === head && fromQuery === query) return batch * 12 + one;
        }
        throw new Error(`row ${row} is read nowhere`);
      };
      const faults = {
        'Q, K and V are': { q, k, v },
        'K and V are': { k, v },
        'Q and K are': { q, k },
        'Q and V are': { q, v },
        'Q is': { q },
        'K is': { k },
        'V is': { v },
      };
      const isBack = ({ statement }: (typeof found)[number]) =>
        statement.includes('and the output is written so');
      for (const [words, fault] of Object.entries(faults)) {
        const [one, ...others] = found.filter(
          (each) => each.statement.startsWith(`${words} read`) && !isBack(each),
        );
        expect(others).toEqual([]);
        expectPredicts(one, context, (row) => book.row(row, fault));
      }
      const back = found.filter(isBack);
      expect(back.map(({ statement }) => statement.slice(0, 4))).toEqual(['Q, K', 'Q is']);
      for (const one of back)
        expectPredicts(one, context, (row) => ({
          ...book.row(readFrom(row), one.statement.startsWith('Q is') ? { q } : { q, k, v }),
          lse: NaN,
        }));
      const [output] = found.filter(({ statement }) => statement.startsWith('the output'));
      expectPredicts(output, context, (row) => {
        const { batch, head, query } = book.rowAt(row);
        const [otherHead, other] = ofQ(head, query);
        return { ...book.row((batch * 4 + otherHead) * 3 + other), lse: NaN };
      });
      expect(found.length).toBe(10);
    });
  });

  it('is none of a single head or a single row', () => {
    const names = (frame: Partial<ProblemFrame>) =>
      [...viewHypotheses(contextOfFault(problemOf(frame)))].map(({ statement }) =>
        statement.replace(/ (is|are) read.*/, ''),
      );
    expect(new Set(names({ kvHeads: 1 }))).toEqual(new Set(['Q', 'the output']));
    expect(new Set(names({ queries: 1 }))).toEqual(new Set(['K and V', 'K', 'V']));
    expect(names({ heads: 1, kvHeads: 1 })).toEqual([]);
  });
});
