/** Quantities that were judged, by chance, and the names of all that is wrong with them. */
import * as fc from 'fast-check';
import { nothingLost } from '../../../src/audit/element-test.js';
import type { JudgedNumbers, JudgedVectors } from '../../../src/audit/judge-quantity.js';
import { structureTests } from '../../../src/audit/structure/structure-result.js';
import { quantities } from '../../../src/problem/index.js';

const at = { batch: 0, head: 1, query: 2, column: 3 };
const worst = { at, value: 1, oracle: 2, error: 1, bound: 0.5 };
const [out, lse] = quantities;
const values = new Float64Array(12);
/** One thing, and now and then another. */
export const seldom = <T>(usual: T, ...others: readonly T[]) =>
  fc.oneof(
    { weight: 5, arbitrary: fc.constant(usual) },
    { weight: 1, arbitrary: fc.constantFrom(...others) },
  );

/** A result of a test of structure: some within their threshold, of either sign, and some beyond. */
export const structure = fc.uniqueArray(
  fc.record({
    test: fc.constantFrom(...structureTests),
    scope: fc.constantFrom('row' as const, 'tile' as const, 'head' as const),
    head: fc.nat(3),
    firstRow: fc.constant(0),
    rows: fc.constant(4),
    lastRow: fc.constant(3),
    firstKey: fc.constant(0),
    keys: fc.constant(128),
    statistic: seldom(0, 0.99, -0.99, 1, -1, 1.01, -1.01),
    threshold: fc.constant(1),
  }),
  { maxLength: 4, selector: ({ test, scope }) => `${test} ${scope}` },
);

/** The output, judged. */
export const vector: fc.Arbitrary<JudgedVectors> = fc
  .record({
    outside: seldom(0, 2),
    unbounded: seldom(0, 5, 12),
    nonFinite: seldom(0, 1),
    ofSpread: seldom(0, 2, 3),
    measured: seldom([0.5, 0.5], [0.5, 1.01], [1.01, 0.5]),
    structure,
  })
  .map(
    ({ outside, unbounded, nonFinite, ofSpread, measured, structure: results }) =>
      ({
        row: 'vector',
        quantity: out,
        heads: 2,
        lost: nothingLost,
        format: 'bf16',
        values,
        elements: {
          elements: 12,
          outside,
          unbounded,
          nonFinite,
          worstRatio: 0.25,
          medianRatio: 0,
          worst,
          firstNonFinite: nonFinite > 0 ? at : null,
        },
        spread: {
          results: measured.map((one, i) => ({
            scope: i === 0 ? 'tile' : 'head',
            head: 0,
            firstRow: 0,
            rows: 4,
            lastRow: 3,
            measured: one,
            expected: 0.1,
            limit: 1,
          })),
          outside: ofSpread,
          worst,
        },
        structure: results,
      }) as unknown as JudgedVectors,
  );

/** The LSE, judged. */
export const numbers: fc.Arbitrary<JudgedNumbers> = fc
  .record({
    outside: seldom(0, 2),
    unbounded: seldom(0, 5, 12),
    nonFinite: seldom(0, 1),
    looksLike: fc.constantFrom(null, 'base-2', 'offset'),
    structure,
  })
  .map(
    ({ outside, unbounded, nonFinite, looksLike, structure: results }) =>
      ({
        row: 'number',
        quantity: lse,
        heads: 2,
        lost: nothingLost,
        format: 'fp32',
        values,
        numbers: {
          rows: 12,
          outside,
          unbounded,
          nonFinite,
          looksLike,
          mean: 0.5,
          worst,
          firstNonFinite: nonFinite > 0 ? worst : null,
        },
        structure: results,
      }) as unknown as JudgedNumbers,
  );

/** The names of all that is wrong with a quantity, in their order. */
export function wrongWith(judged: JudgedVectors | JudgedNumbers): string[] {
  const ofStructure = structureTests.filter((test) =>
    judged.structure.some((one) => one.test === test && Math.abs(one.statistic) > one.threshold),
  );
  const named = (bad: boolean, name: string) => (bad ? [name] : []);
  if (judged.row === 'number')
    return [
      ...named(judged.numbers.nonFinite > 0, 'lse-non-finite'),
      ...named(judged.numbers.outside > 0, 'lse-bound'),
      ...ofStructure,
    ];
  const { elements, spread } = judged;
  return [
    ...named(elements.nonFinite > 0, 'non-finite'),
    ...ofStructure,
    ...named(elements.outside > 0, 'element-bound'),
    ...named(
      spread.results.some(({ measured, limit }) => measured > limit),
      'rms',
    ),
    ...named(spread.outside > elements.outside, 'element-spread'),
  ];
}
