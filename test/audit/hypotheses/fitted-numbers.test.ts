import { describe, expect, it } from 'vitest';
import { coefficientHypotheses } from '../../../src/audit/diagnosis/hypotheses/coefficient-faults.js';
import { scaleFactorHypotheses } from '../../../src/audit/diagnosis/hypotheses/scale-factor.js';
import { scoreBiasHypotheses } from '../../../src/audit/diagnosis/hypotheses/score-bias.js';
import { singleKeyHypotheses } from '../../../src/audit/diagnosis/hypotheses/single-key-faults.js';
import {
  uniformOffsetHypotheses,
  uniformScaleHypotheses,
} from '../../../src/audit/diagnosis/hypotheses/uniform-scale.js';
import type { Hypothesis, HypothesisFamily } from '../../../src/audit/diagnosis/hypothesis.js';
import type { Problem } from '../../../src/problem/index.js';
import { filledProblem, pseudorandom, tensor } from '../../setup/problems.js';
import { contextOf, contextOfFault, expectPredicts } from './context.js';
import { Textbook, type At, type Fault } from './textbook.js';

const fill = () => {
  const random = pseudorandom(13);
  return () => 2 * random();
};
const problemOf = (changes: Partial<Problem> = {}) =>
  filledProblem({ batch: 2, heads: 2, queries: 4, keys: 9, dim: 3 }, fill(), {
    scale: 0.8,
    ...changes,
  });

/** Checks that one of a family's hypotheses, whose number is fitted, gives the rows of a planted fault. */
function expectFits(
  family: HypothesisFamily,
  problem: Problem,
  fault: Fault,
  { statement, hasLse = true, tolerance = 1e-6 }: FitCheck = {},
): Hypothesis {
  const context = contextOfFault(problem, fault, { hasLse });
  const found = [...family(context)].filter((one) =>
    statement === undefined ? true : one.statement.includes(statement),
  );
  expect(found.length).toBeGreaterThan(0);
  const book = new Textbook(problem);
  expectPredicts(
    found[0],
    context,
    (row) => ({ ...book.row(row, fault), ...(hasLse ? {} : { lse: NaN }) }),
    tolerance,
  );
  return found[0];
}

interface FitCheck {
  readonly statement?: string;
  readonly hasLse?: boolean;
  readonly tolerance?: number;
}

describe('a scale that is off by a factor', () => {
  it.each([0.11, 0.6, 1.001, 1.7, 3])('is fitted: %f', (factor) => {
    for (const hasLse of [true, false]) {
      const problem = problemOf({ causal: true });
      const fault = { score: (dot: number) => 0.8 * factor * dot };
      expectFits(scaleFactorHypotheses, problem, fault, { hasLse });
    }
  });

  it('is fitted under a softcap, which comes behind it', () => {
    const score = (dot: number) => 1.5 * Math.tanh((0.8 * 1.3 * dot) / 1.5);
    expectFits(scaleFactorHypotheses, problemOf({ softcap: 1.5 }), { score });
  });

  it('is told by what makes it, and by a number where nothing does', () => {
    const told = (factor: number) =>
      expectFits(scaleFactorHypotheses, problemOf(), {
        score: (dot: number) => 0.8 * factor * dot,
      }).statement;
    for (const [factor, form] of [
      [Math.SQRT2, '√2 times the scale'],
      [Math.SQRT1_2, 'the scale over √2'],
      [Math.LOG2E, 'the scale times log2 e'],
      [Math.LN2, 'the scale times ln 2'],
      [2, 'twice the scale'],
      [0.5, 'half the scale'],
      [0.8, 'the scale squared'],
      [Math.sqrt(0.8) / 0.8, 'the root of the scale'],
      [1 / 2 / 0.8, '1/√(d + 1)'],
      [1 / Math.sqrt(2) / 0.8, '1/√(d − 1)'],
      [1 / Math.sqrt(6) / 0.8, '1/√(2d)'],
      [Math.sqrt(2 / 3) / 0.8, '1/√(d/2)'],
      [1 / 3 / 0.8, '1/d'],
      [1 / Math.sqrt(3) / 0.8, '1/√d'],
      [1.44 * Math.LN2, 'the scale with 1.44 for log2 e'],
    ] as const)
      expect(told(factor)).toContain(form);
    expect(told(1.234)).not.toContain(':');
    expect(told(1.234)).toContain('1.234');
  });

  it('is not told of a scale that is right', () => {
    expect([...scaleFactorHypotheses(contextOfFault(problemOf()))]).toEqual([]);
  });
});

describe('one factor or constant on all elements', () => {
  it.each([0.5, 0.97, 1.2, -1, 3])('is fitted: a factor of %f', (factor) => {
    const scaled = { inOutput: () => factor };
    if (factor > 0)
      expectFits(
        uniformScaleHypotheses,
        problemOf(),
        { inSum: () => 1 / factor },
        { statement: 'the row sum is off' },
      );
    const context = contextOfFault(problemOf(), scaled);
    const scale = [...uniformScaleHypotheses(context)].find(({ id }) => id === 'output-scale');
    if (factor === -1) expect(scale).toBeUndefined();
    else
      expectPredicts(scale!, context, (row) =>
        new Textbook(context.input.problem).row(row, scaled),
      );
  });

  it('is a row sum or a final scale where no LSE tells', () => {
    const context = contextOfFault(problemOf(), { inSum: () => 2 }, { hasLse: false });
    const [one, ...others] = uniformScaleHypotheses(context);
    expect(others).toEqual([]);
    expect(one.technique).toBeNull();
    expect(one.statement).toContain('1/2 times');
    expect([...uniformScaleHypotheses(contextOf(problemOf(), exactOf(problemOf())))].length).toBe(
      0,
    );
  });

  it.each([0.25, -3])('is fitted: a constant of %f', (offset) => {
    const problem = problemOf();
    const { out, lse } = new Textbook(problem).rows();
    const context = contextOf(problem, { out: out.map((x) => x + offset), lse });
    const [one] = uniformOffsetHypotheses(context);
    expect(one.statement).toContain(`${Math.abs(offset)} too ${offset > 0 ? 'high' : 'low'}`);
    expectPredicts(one, context, (row) => ({
      out: context.sample[row].observed,
      lse: lse[row],
    }));
  });
});

/** What the oracle gives. */
function exactOf(problem: Problem) {
  const { quantities } = contextOfFault(problem).input.reference;
  return { out: quantities.out.values, lse: quantities.lse.values };
}

describe('a number for each head', () => {
  const logits = [-1.3, 2.2];
  it('is fitted: of a sink, in the LSE and beside it', () => {
    const added: Fault['added'] = (maximum, { head }) => Math.exp(logits[head] - maximum);
    const both = { added };
    expectFits(scoreBiasHypotheses, problemOf(), both, { statement: 'attention sink' });
    const beside = { added, addedInLse: () => 0 };
    expectFits(scoreBiasHypotheses, problemOf(), beside, { statement: 'but not in the LSE' });
    expectFits(scoreBiasHypotheses, problemOf(), both, {
      statement: 'attention sink',
      hasLse: false,
    });
  });

  const slopes = [0.3, -0.7];
  const distances: Readonly<Record<string, (at: At) => number>> = {
    'the distance |query − key|': ({ query, key }) => Math.abs(query + 5 - key),
    'the distance query − key': ({ query, key }) => query + 5 - key,
    'the key’s position': ({ key }) => -key,
  };
  it.each(Object.entries(distances))('is fitted: of a slope on %s', (words, distance) => {
    const score = (dot: number, at: At) => 0.8 * dot - slopes[at.head] * distance(at);
    const found = expectFits(
      scoreBiasHypotheses,
      problemOf({ causal: true }),
      { score },
      { statement: words, tolerance: 1e-5 },
    );
    expect(found.statement).toContain('0.3 on head 0, -0.7 on head 1');
  });

  it('is asked for only where the problem has none', () => {
    const names = (changes: Partial<Problem>) => {
      const sink = (dot: number, at: At) => 0.8 * dot - 0.3 * at.key;
      const context = contextOf(
        problemOf(changes),
        new Textbook(problemOf()).rows({ score: sink }),
      );
      return new Set([...scoreBiasHypotheses(context)].map(({ id }) => id));
    };
    const zeros = tensor('fp32', [2], () => -0.5);
    expect(names({ alibiSlopes: zeros }).has('alibi-unasked')).toBe(false);
    expect(names({ bias: tensor('fp32', [9], () => 0.5) }).has('alibi-unasked')).toBe(false);
    expect(names({ sink: { logits: zeros, inLse: true } }).has('sink-unasked')).toBe(false);
  });
});

describe('one key whose V is wrong', () => {
  const wrong = (column: number | null): Fault['v'] & object => {
    const book = new Textbook(problemOf());
    return (at, c) =>
      book.v(at.batch, at.kvHead, at.key, c) +
      (at.batch === 1 && at.kvHead === 0 && at.key === 4 && (column === null || c === column)
        ? 3 + c
        : 0);
  };

  it.each([null, 1])('is found, with what it is off by (column %s)', (column) => {
    const problem = filledProblem({ batch: 2, heads: 2, queries: 8, keys: 9, dim: 3 }, fill());
    const book = new Textbook(problem);
    const fault: Fault = {
      v: (at, c) =>
        book.v(at.batch, at.kvHead, at.key, c) +
        (at.batch === 1 && at.kvHead === 0 && at.key === 4 && (column === null || c === column)
          ? 3 + c
          : 0),
    };
    const isOfHead = (row: number) => row >= 16 && row < 24;
    const context = contextOfFault(problem, fault, { isDamaged: isOfHead });
    const [one, ...others] = singleKeyHypotheses(context);
    expect(others).toEqual([]);
    expect(one.statement).toBe(
      column === null
        ? 'V of key 4 of kv head 0 is wrong'
        : 'V of key 4 of kv head 0, column 1, is wrong',
    );
    expectPredicts(one, context, (row) => ({ ...book.row(row, fault), lse: book.row(row).lse }));
    const few = contextOfFault(problem, fault, { isDamaged: (row) => row >= 16 && row < 21 });
    expect([...singleKeyHypotheses(few)]).toEqual([]);
    const six = contextOfFault(problem, fault, { isDamaged: (row) => row >= 16 && row < 22 });
    expect([...singleKeyHypotheses(six)].length).toBe(1);
  });

  it('is not told of two keys alike', () => {
    const problem = problemOf();
    const context = contextOfFault(problem, { v: wrong(null), score: () => 0 });
    expect([...singleKeyHypotheses(context)]).toEqual([]);
  });
});

describe('a coefficient of the exponential', () => {
  it.each([1, 2, 3])('is fitted: of power %i', (power) => {
    const problem = problemOf();
    const book = new Textbook(problem);
    const change = 0.01;
    const factor = (at: At) => {
      const scores = book.scores((at.batch * 2 + at.head) * 4 + at.query);
      const x = (scores[at.key] - Math.max(...scores)) * Math.LOG2E;
      const f = x - Math.floor(x);
      return 1 + (change * f ** power) / 2 ** f;
    };
    const fault = { inOutput: factor, inSum: factor };
    const context = contextOfFault(problem, fault);
    const found = [...coefficientHypotheses(context)];
    expect(found.length).toBeGreaterThan(0);
    const off = (one: Hypothesis) =>
      Math.max(
        ...context.sample.map((row) => {
          const { out, lse } = one.predict(row)!;
          const ofLse = Math.abs(lse - row.observedLse!);
          return Math.max(ofLse, ...out.map((x, c) => Math.abs(x - row.observed[c])));
        }),
      );
    expect(Math.min(...found.map(off))).toBeLessThan(1e-6);
  });
});
