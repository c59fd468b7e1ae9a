import { describe, expect, it } from 'vitest';
import {
  outputPrecisionHypotheses,
  scorePrecisionHypotheses,
} from '../../../src/audit/diagnosis/hypotheses/precision-faults.js';
import { formats, round, ulp } from '../../../src/formats/index.js';
import type { Problem } from '../../../src/problem/index.js';
import { filledProblem, pseudorandom } from '../../setup/problems.js';
import { contextOf, contextOfFault, expectPredicts, hypothesesOf } from './context.js';
import { Textbook, type At, type Fault } from './textbook.js';

const problemOf = (changes: Partial<Problem> = {}) => {
  const random = pseudorandom(19);
  const sizes = { heads: 2, queries: 3, keys: 5, dim: 20 };
  return filledProblem(sizes, () => 2 * random(), { scale: 0.3, ...changes });
};

describe('hypotheses about scores kept too short', () => {
  const ways = [
    ['bf16', 'rounded'],
    ['fp16', 'rounded'],
    ['bf16', 'truncated'],
    ['fp16', 'truncated'],
  ] as const;

  it.each(ways)('predict scores in %s, %s', (format, how) => {
    const rounding = how === 'rounded' ? 'nearest-even' : 'toward-zero';
    const held = (x: number) => round(formats[format], x, { rounding });
    for (const softcap of [null, 1.7]) {
      const cap = (x: number) => (softcap === null ? x : softcap * Math.tanh(x / softcap));
      const problem = problemOf({ softcap });
      const book = new Textbook(problem);
      const context = contextOfFault(problem);
      const found = hypothesesOf(scorePrecisionHypotheses, context);
      const laws: Record<string, (dot: number) => number> = {
        [`the scores are ${how} to ${format}`]: (dot) => cap(held(dot * 0.3)),
        [`the scores are ${how} to ${format} before the scale`]: (dot) => cap(held(dot) * 0.3),
        [`the scores, in base 2, are ${how} to ${format}`]: (dot) =>
          held(cap(dot * 0.3) * Math.LOG2E) * Math.LN2,
        ...(softcap === null
          ? {}
          : { [`the capped scores are ${how} to ${format}`]: (dot) => held(cap(dot * 0.3)) }),
      };
      for (const [statement, score] of Object.entries(laws))
        expectPredicts(found.get(`scores-narrow: ${statement}`)!, context, (row) =>
          book.row(row, { score }),
        );
      const tanh = found.get(`tanh-narrow: the softcap's tanh is rounded to ${format}`);
      expect(tanh === undefined).toBe(softcap === null);
      if (tanh !== undefined && softcap !== null)
        expectPredicts(tanh, context, (row) =>
          book.row(row, {
            score: (dot) => softcap * round(formats[format], Math.tanh((dot * 0.3) / softcap)),
          }),
        );
    }
  });

  it('leave out what a power of two as a scale cannot change', () => {
    const names = [
      ...hypothesesOf(scorePrecisionHypotheses, contextOfFault(problemOf({ scale: 0.25 }))).keys(),
    ];
    expect(names.some((name) => name.includes('before the scale'))).toBe(false);
    expect(names.some((name) => name.includes('multiplied by the scale and rounded'))).toBe(false);
    expect(names.some((name) => name.includes('the scale and log2 e and rounded'))).toBe(true);
  });

  it('predict products summed short, and queries that are rounded once more', () => {
    const problem = problemOf();
    const book = new Textbook(problem);
    const context = contextOfFault(problem);
    const found = [...scorePrecisionHypotheses(context)];
    for (const format of ['bf16', 'fp16'] as const)
      for (const chunk of [1, 16]) {
        const held = (x: number) => round(formats[format], x);
        const fault: Fault = {
          score: (_, at: At) => {
            let dot = 0;
            for (let t = 0; t < 20; t++) {
              dot +=
                book.q(at.batch, at.head, at.query, t) * book.k(at.batch, at.kvHead, at.key, t);
              if ((t + 1) % chunk === 0 || t === 19) dot = held(dot);
            }
            return 0.3 * dot;
          },
        };
        const of = found.filter(({ statement }) =>
          statement.startsWith(`Q·Kᵀ is summed in ${format}`),
        );
        expect(of.length).toBe(2);
        expectPredicts(of[chunk === 1 ? 0 : 1], context, (row) => book.row(row, fault));
      }
    for (const [words, factor] of [
      ['the scale and rounded', 0.3],
      ['the scale and log2 e and rounded', 0.3 * Math.LOG2E],
    ] as const) {
      const one = found.find(({ statement }) => statement.includes(`multiplied by ${words}`))!;
      expectPredicts(one, context, (row) =>
        book.row(row, {
          q: (at, t) => round(formats.bf16, book.q(at.batch, at.head, at.query, t) * factor),
          score: (dot) => (0.3 / factor) * dot,
        }),
      );
    }
  });
});

describe('hypotheses about the rounding of an output', () => {
  const problem = problemOf();
  const exact = new Textbook(problem).rows();
  const given = (element: (x: number) => number) =>
    contextOf(problem, { out: exact.out.map(element), lse: exact.lse }, { format: 'bf16' });

  it('predict half an ulp in its direction, with as much more to err by', () => {
    const context = given((x) => x);
    const found = [...outputPrecisionHypotheses(context)];
    const signs = [(x: number) => -Math.sign(x), () => -1, () => 1];
    expect(found.length).toBe(3);
    expect(found.map(({ id }) => id)).toEqual([
      'output-truncated',
      'output-rounded-one-way',
      'output-rounded-one-way',
    ]);
    found.forEach((one, i) => {
      for (const row of context.sample) {
        const { out, limit } = one.predict(row)!;
        row.correct.out.forEach((x, c) => {
          const half = ulp(formats.bf16, x) / 2;
          expect(out[c]).toBe(x + signs[i](x) * half);
          expect(limit[c]).toBe(row.correct.limit[c] + half);
        });
      }
    });
  });

  it('predict a rounding to a shorter format, where all elements are numbers of it', () => {
    for (const format of ['e4m3', 'e5m2'] as const) {
      const context = given((x) => round(formats[format], x));
      const found = [...outputPrecisionHypotheses(context)].filter(({ statement }) =>
        statement.includes(`number of ${format}`),
      );
      expect(found.map(({ id }) => id)).toEqual(['output-rounded-twice']);
      for (const row of context.sample) {
        const { out, limit, noise } = found[0].predict(row)!;
        const deviation = Math.sqrt(row.correct.noise / 20);
        let flips = 0;
        row.correct.out.forEach((x, c) => {
          const step = ulp(formats[format], x);
          flips += step * Math.min(step, deviation);
          expect(out[c]).toBe(round(formats[format], x));
          expect(limit[c]).toBe(row.correct.limit[c] + step);
        });
        expect(noise).toBeCloseTo(row.correct.noise + flips, 12);
      }
    }
    const almost = exact.out.map((x, i) => (i === 7 ? 1 + 2 ** -7 : round(formats.e4m3, x)));
    const context = contextOf(problem, { out: almost, lse: exact.lse }, { format: 'bf16' });
    expect([...outputPrecisionHypotheses(context)].length).toBe(3);
  });
});
