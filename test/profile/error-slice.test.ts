import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  createExp2PolynomialArray,
  exp2Coefficients,
  exp2PolynomialBits,
  type PolynomialDegree,
} from '../../kernels/index.js';
import { exp2Rounded } from '../../oracles/index.js';
import { formats, round, smallestNormal, ulp } from '../../src/formats/index.js';
import { specialFunctions } from '../../src/hardware/index.js';
import { createCandidates, type CandidateName } from '../../src/profile/functions.js';
import type { Cell } from '../../src/profile/cells.js';
import type { ErrorPlan, Slice, SliceErrors } from '../../src/profile/error-plan.js';
import { createErrorSlices } from '../../src/profile/error-slice.js';
import { addSlice, emptySweep } from '../../src/profile/error-sweep.js';
import { bitsOfOrdinal, ordinalOfValue, valueOfOrdinal } from '../../src/profile/float32-order.js';
import { type CountName, countNames, sumNames } from '../../src/profile/record.js';
import { binOf } from './accumulate-definition.js';
import { exp2Measures } from '../../src/profile/techniques/exp2-profile.js';
import type { ArrayFunction } from '../../src/simd/index.js';
import { hardCases } from '../oracles/hard-rounding-cases.js';
import { bitsOf, float32 } from './random-results.js';
import { scaled } from '../setup/effort.js';

const candidates: readonly CandidateName[] = [
  ...(['ex2.approx.ftz.f32', 'degree 1', 'degree 3', 'degree 5'] as const),
];
const plan: ErrorPlan = {
  kind: 'errors',
  candidates,
  reference: 'exp2',
  measures: exp2Measures,
  increasing: true,
  first: ordinalOfValue(-127),
  last: ordinalOfValue(127),
  panels: [],
};
const functions = createCandidates();
const measureExp2 = createErrorSlices(plan, functions);

const sliceAt = (x: number, count: number): Slice => {
  const first = ordinalOfValue(x);
  return { cell: 0, first, last: first + count - 1, isMeasured: true };
};

/** One result, computed by the plain functions alone. */
function plainResult(name: CandidateName, bits: number): number {
  if (name === 'ex2.approx.ftz.f32') return float32(specialFunctions[name].evaluate(bits));
  const degree = Number(name.replace('degree ', '')) as PolynomialDegree;
  return float32(exp2PolynomialBits(float32(bits), degree));
}

/** Counts and errors of a slice, computed one input at a time with the plain functions. */
function plainErrors({ first, last }: Slice, candidate: CandidateName, m: number) {
  const { format: name, overflow } = exp2Measures[m].rounding;
  const format = formats[name];
  const counts = new Map<CountName, number>(countNames.map((count) => [count, 0]));
  const count = (key: CountName, holds: boolean): void => {
    if (holds) counts.set(key, counts.get(key)! + 1);
  };
  const scaled: number[] = [];
  const ulps: number[] = [];
  for (let ordinal = first; ordinal <= last; ordinal++) {
    const bits = bitsOfOrdinal(ordinal);
    const x = float32(bits);
    const exact = 2 ** x;
    const z = round(format, plainResult(candidate, bits), { overflow });
    const correct = exp2Rounded(x, format);
    const saturated = overflow === 'saturate' && !(correct <= format.maxFinite);
    const baseline = round(format, plainResult(candidates[0], bits), { overflow });
    count('notCorrectlyRounded', z !== (saturated ? format.maxFinite : correct));
    count('differing', z !== baseline);
    count('zeros', z === 0);
    count('subnormals', z !== 0 && Math.abs(z) < smallestNormal(format));
    count('nonFinite', !Number.isFinite(z));
    if (exact > format.maxFinite || !Number.isFinite(z)) continue;
    ulps.push((z - exact) / ulp(format, exact));
    if (exact >= smallestNormal(format)) scaled.push(z / exact - 1);
  }
  return { counts, scaled, ulps };
}

const sizes = (errors: readonly number[]): number => errors.reduce((a, b) => a + Math.abs(b), 0);
const largest = (errors: readonly number[]): number => Math.max(0, ...errors.map(Math.abs));

describe('a slice of exp2', () => {
  const places = fc.oneof(
    fc.double({ min: -126, max: 126, noNaN: true }),
    fc.double({ min: -1, max: 1, noNaN: true }),
    fc.double({ min: -26, max: -8, noNaN: true }),
    fc.constantFrom(-1e-30, 1e-30, -(2 ** -25), 2 ** -25, -1e-9, 8.80735, 16, -14, -6, -25),
  );

  it('has what the plain functions find at every input', () => {
    fc.assert(
      fc.property(places, fc.integer({ min: 1, max: 60 }), (x, count) => {
        const slice = sliceAt(Math.fround(x), count);
        const found = measureExp2(slice);
        for (const [c, name] of candidates.entries())
          for (const m of exp2Measures.keys()) {
            const plain = plainErrors(slice, name, m);
            const { counts, sums, histogram, largestScaled, largestUlp } =
              found.candidates[c].errors[m];
            for (const key of countNames.slice(0, 5))
              expect(counts[countNames.indexOf(key)], `${name} ${m} ${key}`).toBe(
                plain.counts.get(key),
              );
            const lost = countNames.slice(5).map((key) => counts[countNames.indexOf(key)]);
            const measured = found.measured[m];
            expect(measured.scaled - lost[0]).toBe(plain.scaled.length);
            expect(measured.ulp - lost[1]).toBe(plain.ulps.length);
            // 2 ** x and the reference may each be some units of 2^-53 off.
            const close = (actual: number, expected: number, terms: number, unit: number): void =>
              expect(Math.abs(actual - expected)).toBeLessThanOrEqual(
                terms * (unit + 2 ** -40 * Math.abs(expected)),
              );
            const magnitude = (key: 'scaledMagnitude' | 'ulpMagnitude'): number =>
              sums[sumNames.indexOf(key)];
            close(magnitude('scaledMagnitude'), sizes(plain.scaled), count, 2 ** -49);
            close(magnitude('ulpMagnitude'), sizes(plain.ulps), count, 2 ** -24);
            close(largestScaled[0]?.value ?? 0, largest(plain.scaled), 1, 2 ** -49);
            close(largestUlp[0]?.value ?? 0, largest(plain.ulps), 1, 2 ** -24);
            const inBin = (from: number): number =>
              plain.ulps.filter((error) => binOf(Math.abs(error)) >= from).length;
            const high = histogram.subarray(5).reduce((a, b) => a + b, 0);
            // Errors that are no half ulp to within 2^-24 are on the same side in both.
            if (plain.ulps.every((u) => Math.abs(Math.abs(u) - 0.5) > 2 ** -20))
              expect(high).toBe(inBin(5));
          }
      }),
      { numRuns: scaled(25) },
    );
  });

  it('decides correct rounding where fp64 cannot', () => {
    const correct: ArrayFunction = (inputs, results) => {
      inputs.forEach((bits, i) => (results[i] = bitsOf(exp2Rounded(float32(bits), formats.fp32))));
    };
    const plans = { ...plan, candidates: ['P'] as const, measures: exp2Measures.slice(0, 1) };
    const run = createErrorSlices(plans, new Map([['P', correct]]));
    for (const { bits } of hardCases.exp2.filter(({ format }) => format === 'fp32')) {
      const { counts } = run(sliceAt(float32(bits), 3)).candidates[0].errors[0];
      expect(counts[countNames.indexOf('notCorrectlyRounded')]).toBe(0);
    }
  });

  it('is the sum of its parts', () => {
    const cells: Cell[] = [{ label: '', first: 0, last: 0, isMeasured: true, exact: '' }];
    const merged = (...slices: readonly SliceErrors[]) => {
      const sweep = emptySweep(plan, cells);
      for (const slice of slices) addSlice(sweep, slice);
      return sweep.cells[0].functions;
    };
    fc.assert(
      fc.property(places, fc.integer({ min: 1, max: 2500 }), (x, cut) => {
        const whole = sliceAt(Math.fround(x), 2600);
        const middle = whole.first + cut;
        // A slice stays within one binade.
        fc.pre(Math.floor(whole.first / 2 ** 20) === Math.floor(whole.last / 2 ** 20));
        const all = merged(measureExp2(whole));
        const parts = merged(
          measureExp2({ ...whole, last: middle - 1 }),
          measureExp2({ ...whole, first: middle }),
        );
        for (const [c, { errors, classes }] of all.entries()) {
          expect(parts[c].classes).toEqual(classes);
          for (const [m, { totals, ...lists }] of errors.entries()) {
            const { totals: others, ...otherLists } = parts[c].errors[m];
            expect(otherLists).toEqual(lists);
            for (const [spacing, { sums, ...rest }] of totals) {
              const { sums: otherSums, ...other } = others.get(spacing)!;
              expect(other).toEqual(rest);
              expect(otherSums).toHaveLength(sums.length);
            }
          }
        }
      }),
      { numRuns: scaled(10) },
    );
  });

  it('shows a coefficient that is one ulp off', () => {
    const coefficients = [...exp2Coefficients[5]];
    coefficients[1] += ulp(formats.fp32, coefficients[1]);
    const faulty = new Map<CandidateName, ArrayFunction>(functions);
    faulty.set('degree 5', createExp2PolynomialArray(5, coefficients));
    const slice = sliceAt(-0.75, 2 ** 16);
    const [right, wrong] = [functions, faulty].map((set) => {
      const { errors } = createErrorSlices(plan, set)(slice).candidates[3];
      const at = countNames.indexOf('notCorrectlyRounded');
      return { errors: errors[0], incorrect: errors[0].counts[at] };
    });
    expect(wrong.incorrect).not.toBe(right.incorrect);
    expect(wrong.errors.largestScaled).not.toEqual(right.errors.largestScaled);
  });
});

describe('breaks of monotonicity', () => {
  /** The identity but for a dip at some inputs. */
  const dipping =
    (dips: ReadonlySet<number>): ArrayFunction =>
    (inputs, results) =>
      inputs.forEach((bits, i) => (results[i] = dips.has(bits) ? bits - 0x10000 : bits));

  const identityPlan: ErrorPlan = {
    ...plan,
    candidates: ['P'],
    reference: 'identity',
    measures: exp2Measures.slice(0, 1),
    first: ordinalOfValue(1),
    last: ordinalOfValue(2),
  };

  it('are found wherever they are, at borders of segments and slices too', () => {
    const first = ordinalOfValue(1.5);
    const place = fc.oneof(
      fc.integer({ min: 2, max: 3000 }),
      fc.constantFrom(1023, 1024, 1025, 1999, 2000, 2001, 2047, 2048),
    );
    fc.assert(
      fc.property(fc.uniqueArray(place, { minLength: 1, maxLength: 3 }), (places) => {
        const bits = places.map((at) => bitsOfOrdinal(first + at));
        const run = createErrorSlices(identityPlan, new Map([['P', dipping(new Set(bits))]]));
        const slices = [
          { cell: 0, first, last: first + 1999, isMeasured: true },
          { cell: 0, first: first + 2000, last: first + 4000, isMeasured: true },
        ].map(run);
        const found = slices.flatMap(({ candidates: [{ errors }] }) => errors[0].breaks.first);
        // A dip is a break at the input before it, unless that is a dip as well.
        const expected = places
          .filter((at) => !places.includes(at - 1))
          .map((at) => first + at - 1)
          .sort((a, b) => a - b);
        expect(found).toEqual(expected);
      }),
    );
  });

  it('are found in and behind runs of one result', () => {
    // 2^x is 1 in fp64 as well, so that whole segments count as one input.
    const first = ordinalOfValue(2 ** -100);
    const one = 0x3f800000;
    const constantBut =
      (dips: readonly number[]): ArrayFunction =>
      (inputs, results) =>
        inputs.forEach((bits, i) => (results[i] = dips.includes(bits) ? one - 1 : one));
    const place = fc.oneof(fc.integer({ min: 1, max: 4000 }), fc.constantFrom(1023, 1024, 2048));
    fc.assert(
      fc.property(place, (at) => {
        const run = createErrorSlices(
          { ...plan, candidates: ['P'] },
          new Map([['P', constantBut([bitsOfOrdinal(first + at)])]]),
        );
        const slice = { cell: 0, first, last: first + 5000, isMeasured: true };
        const [{ errors, classes }] = run(slice).candidates;
        expect(errors[0].breaks.first).toEqual([first + at - 1]);
        expect(errors[0].largestUlp).toEqual([{ value: 0.5, ordinal: first + at }]);
        expect(errors[0].counts[countNames.indexOf('notCorrectlyRounded')]).toBe(1);
        expect(classes).toMatchObject({ least: one - 1, most: one });
      }),
      { numRuns: 30 },
    );
  });

  it('have the size of the drop in ulps', () => {
    const bits = bitsOfOrdinal(ordinalOfValue(1.5) + 5);
    const run = createErrorSlices(identityPlan, new Map([['P', dipping(new Set([bits]))]]));
    const { breaks } = run(sliceAt(1.5, 20)).candidates[0].errors[0];
    expect(breaks).toEqual({
      count: 1,
      largest: [{ value: 0x10000 - 1, ordinal: ordinalOfValue(1.5) + 4 }],
      first: [ordinalOfValue(1.5) + 4],
    });
  });

  it('are none at the end of the range', () => {
    const last = ordinalOfValue(2);
    const run = createErrorSlices(identityPlan, functions);
    const slice = { cell: 0, first: last - 3, last, isMeasured: true };
    expect(run(slice).candidates[0].errors[0].breaks.count).toBe(0);
    expect(valueOfOrdinal(last)).toBe(2);
  });
});

describe('the envelopes', () => {
  it('hold every error of a column, and one of them at each end', () => {
    const first = ordinalOfValue(-0.75);
    const panel = [first + 100, first + 1500, first + 1501, first + 5000];
    const run = createErrorSlices({ ...plan, panels: [panel] }, functions);
    const slice = { cell: 0, first, last: first + 5999, isMeasured: true };
    const found = run(slice).candidates.map(({ envelopes }) => envelopes[0]!);
    for (const [c, name] of candidates.entries())
      for (let column = 0; column < 3; column++) {
        const part = { ...slice, first: panel[column], last: panel[column + 1] - 1 };
        const { scaled } = plainErrors(part, name, 0);
        expect(found[c].firstColumn).toBe(0);
        expect(Math.abs(found[c].least[column] - Math.min(...scaled))).toBeLessThan(2 ** -49);
        expect(Math.abs(found[c].most[column] - Math.max(...scaled))).toBeLessThan(2 ** -49);
      }
  });
});
