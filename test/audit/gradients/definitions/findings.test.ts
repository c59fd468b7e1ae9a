import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { gradientFindings } from '../../../../src/audit/gradients/gradient-findings.js';
import { judgementOf, spreadOf, statisticOf, type Changes } from './made-judgements.js';

const at = { batch: 1, head: 2, query: 7, column: 3 };
const names = ['dq', 'dk', 'dv', 'dbias'] as const;
const tests = ['scale', 'sum', 'pairing'] as const;

const some = fc.constantFrom(0, 0, 0, 2);
/** A statistic beside its limit of 1: at it, within, and beyond. */
const statistics = fc.constantFrom(0, 1, -1, 0.99, 1.01, -1.01);
const measures = fc.constantFrom(0, 0.99, 1, 1.01);

const changes = fc.record({
  nonFinite: some,
  outside: some,
  /** Elements beyond independent roundings: those beyond the worst case are among them. */
  more: some,
  sums: fc.subarray([...tests.flatMap((test) => [`${test} tile`, `${test} head`] as const)]),
  statistic: statistics,
  spreads: fc.array(measures, { maxLength: 2 }),
  limit: fc.constantFrom(0, 1),
});

type Drawn = typeof changes extends fc.Arbitrary<infer T> ? T : never;

function changesOf({ nonFinite, outside, more, sums, statistic, spreads, limit }: Drawn): Changes {
  return {
    elements: {
      nonFinite,
      outside,
      firstNonFinite: nonFinite > 0 ? at : null,
      worst: { at, value: 1, oracle: 2, error: 0.25, bound: 0.125 },
    },
    spread: {
      outside: outside + more,
      worst: { at, error: 0.5, bound: 0.25 },
      results: spreads.map((measured, i) =>
        spreadOf({ scope: i === 0 ? 'tile' : 'head', measured, limit }),
      ),
    },
    structure: sums.map((one) => {
      const [test, scope] = one.split(' ') as [(typeof tests)[number], 'tile' | 'head'];
      return statisticOf({ test, scope, statistic });
    }),
  };
}

describe('findings of gradients', () => {
  it('are one for each test that fails, ⟨Q, dQ⟩ of dQ where that alone fails otherwise', () => {
    fc.assert(
      fc.property(fc.tuple(changes, changes, changes, changes), (drawn) => {
        const judged = names.map((name, i) => judgementOf(name, changesOf(drawn[i])));
        const found = gradientFindings(judged, 'any kernel');
        const failing = names.map((_, i) => {
          const { nonFinite, outside, more, sums, statistic, spreads, limit } = drawn[i];
          const isOff = Math.abs(statistic) > 1;
          return [
            ...(nonFinite > 0 ? ['non-finite'] : []),
            ...tests.filter((test) => isOff && sums.some((one) => one.startsWith(test))),
            ...(outside > 0 ? ['bound'] : []),
            ...(spreads.some((one) => one > limit) ? ['rms'] : []),
            ...(more > 0 ? ['spread'] : []),
          ];
        });
        const isOther = (i: number) => failing[i].some((one) => one !== 'pairing');
        const wanted = names.flatMap((name, i) =>
          failing[i].map((fault) => {
            const isMoved = fault === 'pairing' && isOther(0) && !isOther(1);
            return [isMoved ? 'dq' : name, fault];
          }),
        );
        expect(
          found.map(({ quantity, test }) => [quantity, test.slice(quantity.length + 1)]),
        ).toEqual(wanted);
        for (const { test, isWorstCase } of found)
          expect(isWorstCase).toBe(test.endsWith('-non-finite') || test.endsWith('-bound'));
      }),
      { numRuns: 60 },
    );
  });
});

describe('⟨Q, dQ⟩ beside ⟨K, dK⟩', () => {
  it.each<[of: string, dqFails: boolean, dkFails: boolean]>([
    ['dq', true, false],
    ['dk', true, true],
    ['dk', false, true],
    ['dk', false, false],
  ])('is a finding of %s where dQ fails otherwise: %s, and dK: %s', (of, dqFails, dkFails) => {
    const elements = { nonFinite: 1, firstNonFinite: at };
    const pairing = statisticOf({ test: 'pairing', statistic: 2 });
    const found = gradientFindings(
      [
        judgementOf('dq', dqFails ? { elements } : {}),
        judgementOf('dk', { structure: [pairing], ...(dkFails && { elements }) }),
      ],
      'any kernel',
    );
    const pairs = found.filter(({ statement }) => statement.startsWith('⟨Q, dQ⟩'));
    expect(pairs.map(({ quantity, test }) => [quantity, test])).toEqual([[of, `${of}-pairing`]]);
  });
});

/** What is said of one gradient that fails. */
const told = (name: (typeof names)[number] | 'dsink', of: Changes) =>
  gradientFindings([judgementOf(name, of)], 'any kernel').map(({ statement }) => statement);

/** What is said of one sum. */
const ofSum = (
  name: Parameters<typeof told>[0],
  statistic: Parameters<typeof statisticOf>[0],
  of: Changes = {},
) => told(name, { ...of, structure: [statisticOf({ threshold: 0.01, ...statistic })] });

describe('the statement of a finding', () => {
  it('tells the elements that are off, and the worst of them', () => {
    const worst = { at, value: 1, oracle: 2, error: 0.25, bound: 0.125 };
    expect(told('dq', { elements: { nonFinite: 3, firstNonFinite: at } })).toEqual([
      '3 of 100 elements of dQ are NaN or infinite where a correct kernel is not, or the reverse; the first at batch 1, head 2, query 7, column 3',
    ]);
    expect(told('dq', { elements: { outside: 2, worst } })).toEqual([
      '2 of 100 elements of dQ err by more than any kernel can; the worst by 0.25 where at most 0.125, at batch 1, head 2, query 7, column 3',
    ]);
    expect(told('dv', { elements: { outside: 2, worst: { ...worst, bound: 0 } } })).toEqual([
      '2 of 100 elements of dV are not zero where nothing adds to them, the largest 0.25 at batch 1, head 2, query 7, column 3',
    ]);
    expect(told('dk', { spread: { outside: 4, worst: { at, error: 0.5, bound: 0.25 } } })).toEqual([
      '4 of 100 elements of dK err by more than independent roundings add up to; the worst by 0.5, where these make at most 0.25, at batch 1, head 2, query 7, column 3',
    ]);
  });

  it('tells the spread of the widest rows that are off', () => {
    const tile = spreadOf({
      scope: 'tile',
      head: 6,
      firstRow: 128,
      lastRow: 140,
      measured: 3,
      expected: 0.75,
      limit: 1.5,
    });
    const of = 'is 3, where roundings make 0.75 and at most 1.5';
    expect(told('dk', { spread: { results: [tile, spreadOf()] } })).toEqual([
      `the root mean square error of dK on batch 1, head 2, keys 128 to 140 ${of}`,
    ]);
    expect(told('dq', { spread: { results: [{ ...tile, head: 1 }] } })).toEqual([
      `the root mean square error of dQ on head 1, queries 128 to 140 ${of}`,
    ]);
    const head = { ...tile, scope: 'head', head: 3 } as const;
    expect(told('dq', { spread: { results: [tile, head] } })).toEqual([
      `the root mean square error of dQ on head 3 ${of}`,
    ]);
  });

  it('tells the slope on the oracle, or that all is zero', () => {
    const scale = (statistic: number) => ofSum('dk', { test: 'scale', statistic, head: 5 })[0];
    const [where, explained] = ['on batch 1, head 1', 'rounding explains 1 ± 0.01'];
    expect(scale(-1)).toBe(`dK is zero ${where}`);
    expect(scale(-1 + 0.9e-9)).toBe(`dK is zero ${where}`);
    expect(scale(-1 - 0.9e-9)).toBe(`dK is zero ${where}`);
    expect(scale(-1 + 1.1e-9)).toContain('dK is 100 % small');
    expect(scale(-1 - 1.1e-9)).toContain('dK runs against what it should be');
    expect(scale(-1.5)).toBe(
      `dK runs against what it should be ${where} (slope on the oracle -0.5000; ${explained})`,
    );
    expect(scale(0.25)).toBe(
      `dK is 25 % large ${where} (slope on the oracle 1.2500; ${explained})`,
    );
    expect(scale(-0.25)).toBe(
      `dK is 25 % small ${where} (slope on the oracle 0.7500; ${explained})`,
    );
  });

  it('tells the law that a sum breaks, of the widest rows that do', () => {
    const off = { statistic: -0.5, head: 2, column: 9 };
    const sum = (name: Parameters<typeof told>[0], of: Changes = {}) => ofSum(name, off, of)[0];
    const rest = 'in column 9 of head 2 by 0.5; rounding explains 0.01';
    expect(sum('dq')).toBe(`the sum of dQ over the queries is off ${rest}`);
    expect(sum('dk')).toBe(`Σ dK over the keys is off, as where Σ dS of a row is not 0 ${rest}`);
    expect(sum('dv')).toBe(`Σ dV is not Σ dO ${rest}`);
    expect(sum('dbias')).toBe(`the sum of dBias over its queries is off ${rest}`);
    expect(sum('dv', { isSample: true })).toBe(
      `the sum of dV over the rows of the sample is off ${rest}`,
    );
    expect(ofSum('dk', { ...off, test: 'pairing' })).toEqual([
      '⟨Q, dQ⟩ and ⟨K, dK⟩ of head 2, which are one number, differ by 0.5 of the sizes of their terms; rounding explains 0.01',
    ]);
    const tile = statisticOf({ scope: 'tile', head: 1, statistic: 2, firstRow: 64, lastRow: 99 });
    const head = statisticOf({ head: 3, statistic: 3 });
    expect(told('dk', { structure: [tile, { ...head, statistic: 1 }] })[0]).toContain(
      'column 0 of head 1, keys 64 to 99 by 2',
    );
    expect(told('dk', { structure: [tile, head] })[0]).toContain('column 0 of head 3 by 3');
  });
});
