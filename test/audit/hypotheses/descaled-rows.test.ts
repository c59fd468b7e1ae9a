import { describe, expect, it } from 'vitest';
import { descaleHypotheses } from '../../../src/audit/diagnosis/hypotheses/descale-faults.js';
import type { ScaleFactors, Tensor } from '../../../src/formats/index.js';
import type { Problem } from '../../../src/problem/index.js';
import { filledProblem, pseudorandom, sequencesOf } from '../../setup/problems.js';
import { contextOf, expectPredicts } from './context.js';
import { Textbook, type Fault } from './textbook.js';

const heads = 2;
/** Numbers of queries and keys: not all sequences have both. */
const sizes = [
  [2, 3],
  [0, 2],
  [1, 4],
  [2, 1],
] as const;
const sequences = sequencesOf(sizes);
const [queries, keys] = [5, 10];

/** The sequence of each row, from the number of rows of each. */
const owners = (axis: 0 | 1) =>
  sizes.flatMap((size, sequence) => Array<number>(size[axis]).fill(sequence));
const [ofQuery, ofKey] = [owners(0), owners(1)];

/** Powers of two, by head and by sequence or block. */
const factor = (name: 'q' | 'k' | 'v', head: number, part: number) =>
  2 ** (((name === 'q' ? 1 : name === 'k' ? 3 : 2) * (part + 1) + 2 * head) % 5) / 4;

/** A tensor with factors by head and rows: `blocks` of them, or one for each row. */
function withFactors(tensor: Tensor, values: readonly number[], rank: 3 | 4): Tensor {
  const [rows, dim] = tensor.shape.slice(-2);
  const count = values.length / heads;
  const ofRank = (sizes: readonly number[]) => sizes.slice(4 - rank);
  const factors: ScaleFactors = {
    name: 'descale',
    format: 'fp32',
    values: Float64Array.from(values),
    shape: ofRank([1, heads, count, 1]),
    blocks: ofRank([1, 1, rows / count, dim]),
  };
  return { ...tensor, scales: { factors: [factors], precision: 24, largest: 4 } };
}

const byHead = (count: number, of: (head: number, row: number) => number) =>
  Array.from({ length: heads * count }, (_, i) => of(Math.floor(i / count), i % count));

function plainProblem(rank: 3 | 4, seed: number, changes: Partial<Problem> = {}) {
  const random = pseudorandom(seed);
  const frame = { batch: rank === 3 ? null : 1, heads, queries, keys, dim: 2 };
  return filledProblem(frame, () => 2 * random(), { scale: 0.6, ...changes });
}

describe.each([3, 4] as const)('factors by row of a tensor of rank %d', (rank) => {
  it('are taken from the next sequence that has rows, and the last from the first', () => {
    const plain = plainProblem(rank, 11, { sequences });
    const problem: Problem = {
      ...plain,
      q: withFactors(
        plain.q,
        byHead(queries, (head, row) => factor('q', head, ofQuery[row])),
        rank,
      ),
      k: withFactors(
        plain.k,
        byHead(keys, (head, row) => factor('k', head, ofKey[row])),
        rank,
      ),
      v: withFactors(
        plain.v,
        byHead(keys, (head, row) => factor('v', head, ofKey[row])),
        rank,
      ),
    };
    const book = new Textbook(plain);
    const next = { q: [2, 2, 3, 0], k: [1, 2, 3, 0], v: [1, 2, 3, 0] };
    const taking = (names: string): Fault => {
      const of = (name: 'q' | 'k' | 'v', head: number, sequence: number) =>
        factor(name, head, names.includes(name) ? next[name][sequence] : sequence);
      return {
        sees: ({ query, key }) => ofQuery[query] === ofKey[key],
        q: ({ batch, head, query }, t) =>
          book.q(batch, head, query, t) * of('q', head, ofQuery[query]),
        k: ({ batch, kvHead, key }, t) =>
          book.k(batch, kvHead, key, t) * of('k', kvHead, ofKey[key]),
        v: ({ batch, kvHead, key }, c) =>
          book.v(batch, kvHead, key, c) * of('v', kvHead, ofKey[key]),
      };
    };
    const context = contextOf(problem, book.rows(taking('')));
    const found = new Map([...descaleHypotheses(context)].map((one) => [one.statement, one]));
    for (const [words, names] of [
      ['q_descale is', 'q'],
      ['k_descale is', 'k'],
      ['v_descale is', 'v'],
      ['q_descale and k_descale are', 'qk'],
    ]) {
      const one = found.get(`${words} that of the next sequence`)!;
      expect(one.id).toBe('descale-of-other-batch');
      expectPredicts(one, context, (row) => book.row(row, taking(names)));
    }
    expect([...found.keys()].filter((words) => words.includes('block'))).toEqual([]);
  });

  it('are none of another sequence where no second has rows, and of the first block where there are no sequences', () => {
    const plain = plainProblem(rank, 12);
    const scaled: Problem = {
      ...plain,
      k: withFactors(
        plain.k,
        byHead(2, (head, block) => factor('k', head, block)),
        rank,
      ),
    };
    const book = new Textbook(plain);
    const taking = (isFirst: boolean): Fault => ({
      k: ({ batch, kvHead, key }, t) =>
        book.k(batch, kvHead, key, t) * factor('k', kvHead, isFirst || key < 5 ? 0 : 1),
    });
    const context = contextOf(scaled, book.rows(taking(false)));
    const found = [...descaleHypotheses(context)].filter(({ statement }) =>
      /block|sequence/.test(statement),
    );
    expect(found.map(({ id, statement }) => [id, statement])).toEqual([
      ['descale-of-other-block', 'k_descale is that of the first block of rows for all rows'],
    ]);
    expectPredicts(found[0], context, (row) => book.row(row, taking(true)));
    const alone = contextOf(
      {
        ...scaled,
        k: withFactors(
          plain.k,
          byHead(keys, (head) => factor('k', head, 0)),
          rank,
        ),
        sequences: sequencesOf([[queries, keys]]),
      },
      book.rows(),
    );
    const others = [...descaleHypotheses(alone)].map(({ statement }) => statement);
    expect(others.filter((words) => /block|sequence/.test(words))).toEqual([]);
  });
});
