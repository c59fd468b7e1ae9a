import { describe, expect, it } from 'vitest';
import { scoreHypotheses } from '../../../src/audit/diagnosis/hypotheses/score-faults.js';
import { scoreTermHypotheses } from '../../../src/audit/diagnosis/hypotheses/score-term-faults.js';
import { filledProblem, pseudorandom, tensor } from '../../setup/problems.js';
import {
  contextOf,
  contextOfFault,
  expectFamily,
  expectPredicts,
  hypothesesOf,
} from './context.js';
import { Textbook, type At, type Fault, type RowAt } from './textbook.js';

const random = pseudorandom(23);
const [batch, heads, queries, keys] = [2, 3, 3, 5] as const;
const plain = filledProblem({ batch, heads, queries, keys, dim: 2 }, () => 2 * random(), {
  scale: 0.7,
  causal: true,
});
const numbers = (count: number) => Array.from({ length: count }, () => 2 * random());
const scaled = (dot: number) => 0.7 * dot;
const next = (head: number, by: number) => (head + by + heads) % heads;

/** Every fault as another number that is added to a score. */
function ofAddends(
  addends: Readonly<Record<string, (at: At) => number>>,
  law = scaled,
): Record<string, Fault> {
  return Object.fromEntries(
    Object.entries(addends).map(([name, added]) => [
      name,
      { score: (dot: number, at: At) => law(dot) + added(at) },
    ]),
  );
}

describe('hypotheses about a bias', () => {
  it.each([
    [[batch, heads, queries, keys], true],
    [[1, heads, 1, keys], true],
    [[queries, keys], false],
    [[heads, queries, 1], true],
  ])('predict a bias %j added wrongly', (shape, isOfHeads) => {
    const full = [1, 1, 1, 1, ...shape].slice(-4);
    const values = numbers(full.reduce((a, b) => a * b, 1));
    const bias = tensor('fp32', shape, (i) => values[i]);
    const value = (at: At, head = at.head, key = at.key) => {
      const place = [at.batch, head, at.query, key].map((x, i) => (full[i] === 1 ? 0 : x));
      return Math.fround(values[place.reduce((flat, x, i) => flat * full[i] + x, 0)]);
    };
    expectFamily(
      scoreTermHypotheses,
      { ...plain, bias },
      {
        ...ofAddends({
          'bias-ignored: the bias is ignored': () => 0,
          'bias-twice: the bias is added twice': (at) => 2 * value(at),
          'bias-sign: the bias is subtracted': (at) => -value(at),
          'bias-scaled: the bias is multiplied by the scale, like the scores': (at) =>
            0.7 * value(at),
          'bias-base: the bias lacks the factor log2 e of scores in base 2': (at) =>
            Math.LN2 * value(at),
          'bias-base: the bias has the factor log2 e twice': (at) => value(at) / Math.LN2,
          ...(isOfHeads
            ? {
                'bias-of-other-head: the bias is that of the next head': (at: At) =>
                  value(at, next(at.head, 1)),
                'bias-of-other-head: the bias is that of the head before': (at: At) =>
                  value(at, next(at.head, -1)),
              }
            : {}),
          ...(full[3] === 1
            ? {}
            : {
                'bias-shifted: the bias of each key is that of the key behind it': (at: At) =>
                  value(at, at.head, Math.min(at.key + 1, keys - 1)),
                'bias-shifted: the bias of each key is that of the key before it': (at: At) =>
                  value(at, at.head, Math.max(at.key - 1, 0)),
              }),
        }),
      },
    );
  });

  it('tell a softcap around the sum, and leave the bias alone where a score errs', () => {
    const bias = tensor('fp32', [keys], (i) => i / 4 - 0.5);
    const problem = { ...plain, bias, softcap: 1.25 };
    const book = new Textbook(problem);
    const context = contextOf(problem, book.rows());
    const tanh = (x: number) => 1.25 * Math.tanh(x / 1.25);
    const capOfSum = hypothesesOf(scoreTermHypotheses, context).get(
      'bias-before-softcap: the bias is added before the softcap, not behind it',
    )!;
    expectPredicts(capOfSum, context, (row) =>
      book.row(row, { score: (dot, { key }) => tanh(0.7 * dot + key / 4 - 0.5) }),
    );
    const missing = hypothesesOf(scoreHypotheses, context).get(
      'scale-missing: the scale is not applied',
    )!;
    expectPredicts(missing, context, (row) =>
      book.row(row, { score: (dot, { key }) => tanh(dot) + key / 4 - 0.5 }),
    );
  });
});

describe('hypotheses about ALiBi', () => {
  it.each([[[heads]], [[batch, heads]]])('predict slopes %j taken wrongly', (shape) => {
    const values = numbers(shape.reduce((a, b) => a * b, 1)).map(Math.fround);
    const alibiSlopes = tensor('fp32', shape, (i) => values[i]);
    const slope = ({ batch: entry }: At, head: number) =>
      values[shape.length === 2 ? entry * heads + head : head];
    const distance = ({ query, key }: At) => Math.abs(query + keys - queries - key);
    const times = (factor: number) => (at: At) => -factor * slope(at, at.head) * distance(at);
    expectFamily(
      scoreTermHypotheses,
      { ...plain, alibiSlopes },
      {
        ...ofAddends({
          'alibi-ignored: ALiBi is ignored': times(0),
          'alibi-sign: ALiBi favours distant keys: its sign is lost': times(-1),
          'alibi-twice: ALiBi is applied twice': times(2),
          "alibi-scaled: ALiBi's slopes are multiplied by the scale": times(0.7),
          "alibi-base: ALiBi's slopes lack the factor log2 e of scores in base 2": times(Math.LN2),
          "alibi-of-other-head: ALiBi's slope is that of the next head": (at) =>
            -slope(at, next(at.head, 1)) * distance(at),
          "alibi-of-other-head: ALiBi's slope is that of the head before": (at) =>
            -slope(at, next(at.head, -1)) * distance(at),
          "alibi-aligned-top-left: ALiBi's distances are aligned to the top left, not to the bottom right":
            (at) => -slope(at, at.head) * Math.abs(at.query - at.key),
        }),
      },
    );
  });
});

describe('hypotheses about a sink', () => {
  const logits = [0.5, -1.25, 2];
  it.each([true, false])('predict a sink taken wrongly where the LSE has it: %s', (inLse) => {
    const sink = { logits: tensor('fp32', [heads], (i) => logits[i]), inLse };
    const join = (logit: (head: number) => number, isInLse = inLse, times = 1): Fault => {
      const added = (maximum: number, { head }: RowAt) => times * Math.exp(logit(head) - maximum);
      return { added, addedInLse: isInLse ? added : () => 0 };
    };
    const own = (head: number) => logits[head];
    const parts = [3, 4, 5, 8].map((count) => [
      `sink-twice: the sink is in the row sum ${count} times: once for each split`,
      join(own, inLse, count),
    ]);
    expectFamily(
      scoreTermHypotheses,
      { ...plain, sink },
      {
        'sink-ignored: the sink is left out of the row sum': {},
        [inLse
          ? 'sink-in-lse: the sink is in the row sum, but not in the LSE'
          : 'sink-in-lse: the sink is in the LSE, which it should not be']: join(own, !inLse),
        'sink-twice: the sink is in the row sum twice': join(own, inLse, 2),
        ...(Object.fromEntries(parts) as Record<string, Fault>),
        "sink-scaled: the sink's logit is multiplied by the scale": join((h) => 0.7 * own(h)),
        "sink-base: the sink's logit lacks the factor log2 e of scores in base 2": join(
          (h) => Math.LN2 * own(h),
        ),
        'sink-of-other-head: the sink is that of the next head': join((h) => own(next(h, 1))),
        'sink-of-other-head: the sink is that of the head before': join((h) => own(next(h, -1))),
      },
    );
  });
});

describe('hypotheses about dropout', () => {
  const kept = numbers(batch * heads * queries * keys).map((x) => (x > -1 ? 1 : 0));
  const isKept = ({ batch: entry, head, query, key }: At) =>
    kept[((entry * heads + head) * queries + query) * keys + key];
  const share = 0.75;
  const dropout = {
    kept: { shape: [batch, heads, queries, keys], data: Uint8Array.from(kept) },
    probability: 1 - share,
  };
  const early = 'dropout-before-row-sum: dropped weights are missing in the row sum, too';
  const inSum: Fault = { inOutput: isKept, inSum: isKept };
  const book = new Textbook(plain);
  const lseOf = (row: RowAt) => book.row((row.batch * heads + row.head) * queries + row.query).lse;

  it('predict weights kept, dropped and divided wrongly', () => {
    const divided = { ...inSum, inOutput: (at: At) => isKept(at) / share };
    expectFamily(
      scoreTermHypotheses,
      { ...plain, dropout },
      {
        'dropout-ignored: dropout is ignored': {},
        'dropout-not-rescaled: the weights that dropout keeps are not divided by 1 − p': {
          inOutput: isKept,
        },
        'dropout-inverted: dropout keeps what it should drop': {
          inOutput: (at) => (1 - isKept(at)) / share,
        },
        [early]: divided,
        [`${early}, but not in the LSE`]: { ...divided, lse: (_, { at }) => lseOf(at) },
        [`${early}, and divided by 1 − p`]: { ...inSum, lse: (lse) => lse - Math.log(share) },
        [`${early}, and divided by 1 − p, which the LSE lacks`]: inSum,
        [`${early}, and divided by 1 − p, but not in the LSE`]: {
          ...inSum,
          lse: (_, { at }) => lseOf(at),
        },
      },
    );
  });

  it('are told once each where no LSE tells them apart', () => {
    const context = contextOfFault({ ...plain, dropout }, {}, { hasLse: false });
    const found = [...hypothesesOf(scoreTermHypotheses, context).keys()];
    expect(found.filter((name) => name.startsWith(early))).toEqual([
      early,
      `${early}, and divided by 1 − p`,
    ]);
  });
});
