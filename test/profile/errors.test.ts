import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  addErrors,
  addRecord,
  type Errors,
  exactSumOf,
  noErrors,
  quotient,
  selectCount,
  weigh,
  weighSum,
} from '../../src/profile/errors.js';
import {
  binCount,
  countNames,
  type ErrorRecord,
  type Extreme,
  listLength,
  sumNames,
} from '../../src/profile/record.js';

const finite = fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e30, max: 1e30 });

/** A list as the loops leave it: the largest first, equal ones by ordinal. */
const extremes: fc.Arbitrary<readonly Extreme[]> = fc
  .uniqueArray(fc.integer({ min: 0, max: 50 }), { maxLength: listLength })
  .chain((ordinals) =>
    fc
      .tuple(...ordinals.map(() => fc.integer({ min: 1, max: 3 })))
      .map((values) =>
        ordinals
          .map((ordinal, i) => ({ ordinal, value: values[i] }))
          .sort((a, b) => b.value - a.value || a.ordinal - b.ordinal),
      ),
  );

const small = fc.integer({ min: 0, max: 1000 });
const floats = (length: number, element: fc.Arbitrary<number>): fc.Arbitrary<Float64Array> =>
  fc.array(element, { minLength: length, maxLength: length }).map((a) => Float64Array.from(a));

const record: fc.Arbitrary<ErrorRecord> = fc.record({
  sums: floats(sumNames.length, finite),
  counts: floats(countNames.length, small),
  histogram: floats(binCount, small),
  largestScaled: extremes,
  largestUlp: extremes,
  breaks: fc.record({
    count: small,
    largest: extremes,
    first: extremes.map((list) => list.map(({ ordinal }) => ordinal).sort((a, b) => a - b)),
  }),
});

/** A record with the exponent of its inputs' ulp, how many inputs, and how many are measured. */
const part = fc.tuple(record, fc.integer({ min: -149, max: -140 }), small, small, small);
type Part = [ErrorRecord, number, number, number, number];

function errorsOf(parts: readonly Part[]): Errors {
  const errors = noErrors();
  for (const [from, spacing, inputs, scaled, ulp] of parts)
    addRecord(errors, from, spacing, inputs, { scaled, ulp });
  return errors;
}

function sumOf(...all: readonly Errors[]): Errors {
  const errors = noErrors();
  for (const one of all) addErrors(errors, one);
  return errors;
}

/** The totals in an order of their own. */
const sorted = (errors: Errors): object => ({
  ...errors,
  totals: [...errors.totals].sort(([a], [b]) => a - b),
});

describe('adding errors', () => {
  const parts = fc.array(part, { maxLength: 3 });

  it('is associative and commutative to the last bit', () => {
    fc.assert(
      fc.property(parts, parts, parts, (p, q, r) => {
        const [a, b, c] = [p, q, r].map(errorsOf);
        const left = sorted(sumOf(sumOf(a, b), c));
        expect(sorted(sumOf(a, sumOf(b, c)))).toEqual(left);
        expect(sorted(sumOf(c, b, a))).toEqual(left);
        expect(sorted(errorsOf([...p, ...q, ...r]))).toEqual(left);
      }),
    );
  });

  it('keeps the extremes of a whole order', () => {
    fc.assert(
      fc.property(parts, (p) => {
        const all = p.flatMap(([{ largestUlp }]) => largestUlp);
        const order = [...all].sort((a, b) => b.value - a.value || a.ordinal - b.ordinal);
        expect(errorsOf(p).largestUlp).toEqual(order.slice(0, listLength));
      }),
    );
  });
});

describe('weights', () => {
  it('are 1, or the ulp in units of the smallest', () => {
    fc.assert(
      fc.property(fc.array(part, { minLength: 1, maxLength: 4 }), (p) => {
        const errors = errorsOf(p);
        const inputs = p.map(([, , count]) => BigInt(count));
        const total = (list: readonly bigint[]): bigint => list.reduce((a, b) => a + b, 0n);
        expect(weigh(errors, 'every number', (totals) => totals.inputs)).toBe(total(inputs));
        const heavy = inputs.map((count, i) => count << BigInt(p[i][1] + 149));
        expect(weigh(errors, 'uniform in x', (totals) => totals.inputs)).toBe(total(heavy));
        const zeros = p.map(
          ([{ counts }, e]) => BigInt(counts[countNames.indexOf('zeros')]) << BigInt(e + 149),
        );
        expect(weigh(errors, 'uniform in x', selectCount('zeros'))).toBe(total(zeros));
        const sums = p.map(([{ sums: s }, e]) => exactSumOf(s[0]) << BigInt(e + 149));
        expect(weighSum(errors, 'uniform in x', 'scaled')).toBe(total(sums));
      }),
    );
  });
});

describe('an exact sum', () => {
  it('of one number divided by one is the number', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        expect(quotient(exactSumOf(value), 1n)).toBe(value === 0 ? 0 : value);
      }),
    );
  });

  it('loses nothing to cancellation', () => {
    const sum = [1e300, 2 ** -1074, -1e300, 3].map(exactSumOf).reduce((a, b) => a + b, 0n);
    expect(quotient(sum - exactSumOf(3), 1n)).toBe(2 ** -1074);
  });
});
