import { describe, expect, it } from 'vitest';
import { descaleHypotheses } from '../../../src/audit/diagnosis/hypotheses/descale-faults.js';
import type { Tensor } from '../../../src/formats/index.js';
import type { Problem } from '../../../src/problem/index.js';
import { filledProblem, pseudorandom } from '../../setup/problems.js';
import { contextOf, expectPredicts } from './context.js';
import { Textbook, type At, type Fault, type RowAt } from './textbook.js';

const [batch, heads, queries, keys] = [2, 3, 2, 4];
const random = pseudorandom(37);
const plain = filledProblem({ batch, heads, queries, keys, dim: 2 }, () => 2 * random(), {
  scale: 0.6,
});
const own = {
  q: [1, 0.5, 2, 4, 0.25, 1],
  k: [0.5, 2, 1, 1, 4, 0.5],
  v: [2, 1, 0.5, 0.25, 2, 8],
};
const withFactors = (tensor: Tensor, values: readonly number[]): Tensor => ({
  ...tensor,
  scales: {
    factors: [
      {
        name: 'descale',
        format: 'fp32',
        values: Float64Array.from(values),
        shape: [batch, heads, 1, 1],
        blocks: [1, 1, tensor.shape[2], tensor.shape[3]],
      },
    ],
    precision: 24,
    largest: 8,
  },
});
const problem: Problem = {
  ...plain,
  q: withFactors(plain.q, own.q),
  k: withFactors(plain.k, own.k),
  v: withFactors(plain.v, own.v),
};

type Name = 'q' | 'k' | 'v';
/** The factor that a kernel takes for a head of a batch entry. */
type Factor = (at: RowAt, values: readonly number[], name: Name) => number;
const right: Factor = (at, values) => values[at.batch * heads + at.head];
const book = new Textbook(plain);

/** A kernel that takes other factors for some of the tensors. */
function taking(wrong: Factor, names: readonly Name[]): Fault {
  const of = (name: Name, at: RowAt) => (names.includes(name) ? wrong : right)(at, own[name], name);
  return {
    q: (at, t) => book.q(at.batch, at.head, at.query, t) * of('q', at),
    k: (at: At, t) => book.k(at.batch, at.kvHead, at.key, t) * of('k', at),
    v: (at: At, c) => book.v(at.batch, at.kvHead, at.key, c) * of('v', at),
  };
}

const wrongs: Readonly<
  Record<string, readonly [singular: string, plural: string, factor: Factor]>
> = {
  'descale-missing': ['is not applied', 'are not applied', () => 1],
  'descale-twice': [
    'is applied twice',
    'are applied twice',
    (at, values, name) => right(at, values, name) ** 2,
  ],
  'descale-inverted': [
    'divides, where it is to multiply',
    'divide, where it is to multiply',
    (at, values, name) => 1 / right(at, values, name),
  ],
  'descale-of-other-head': [
    'is that of the next head',
    'are that of the next head',
    (at, values) => values[at.batch * heads + ((at.head + 1) % heads)],
  ],
  'descale-of-other-batch': [
    'is that of the next batch entry',
    'are that of the next batch entry',
    (at, values) => values[((at.batch + 1) % batch) * heads + at.head],
  ],
};

describe('hypotheses about factors of tensors', () => {
  const context = contextOf(problem, book.rows(taking(right, [])));
  const found = new Map([...descaleHypotheses(context)].map((one) => [one.statement, one]));

  it.each(Object.entries(wrongs))(
    'predict %s, of one tensor and of two',
    (id, [one, both, wrong]) => {
      for (const names of [['q'], ['k'], ['v'], ['q', 'k']] as const) {
        const words =
          names.length === 1 ? `${names[0]}_descale ${one}` : `q_descale and k_descale ${both}`;
        const hypothesis = found.get(words)!;
        expect(hypothesis.id).toBe(id);
        expectPredicts(hypothesis, context, (row) => book.row(row, taking(wrong, names)));
      }
    },
  );

  it('predict the factor of head 0, and those of another tensor', () => {
    const first: Factor = (at, values) => values[at.batch * heads];
    expectPredicts(found.get('v_descale is that of head 0 for all heads')!, context, (row) =>
      book.row(row, taking(first, ['v'])),
    );
    for (const name of ['q', 'k', 'v'] as const)
      for (const other of ['q', 'k', 'v'] as const) {
        const hypothesis = found.get(`${name}_descale is that of ${other.toUpperCase()}`);
        expect(hypothesis === undefined).toBe(name === other);
        if (hypothesis !== undefined)
          expectPredicts(hypothesis, context, (row) =>
            book.row(
              row,
              taking((at) => right(at, own[other], other), [name]),
            ),
          );
      }
  });

  it('are none without factors', () => {
    expect([...descaleHypotheses(contextOf(plain, book.rows()))]).toEqual([]);
  });
});
