import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  findNarrowLaw,
  isAlike,
  lawsOfSize,
  likenessSums,
} from '../../../../src/audit/gradients/diagnosis/narrow-sums/find-narrow-law.js';
import { gradientTerms } from '../../../../src/audit/gradients/diagnosis/narrow-sums/gradient-terms.js';
import { formats, round } from '../../../../src/formats/index.js';
import { lazily } from '../../../../src/reuse.js';
import { testSeed } from '../../../setup/effort.js';
import { filledProblem } from '../../../setup/problems.js';
import { bellShaped, gradientCase, roundedGradients } from '../gradient-case.js';
import { replayedOf } from './failed-case.js';

const [queries, keys, dim] = [24, 64, 4] as const;

/** A problem whose dQ is to be explained, its exact values, and the terms that they are sums of. */
const drawn = lazily(() => {
  const one = gradientCase(
    filledProblem({ queries, keys, dim }, bellShaped(1 + (testSeed % 1_000_003))),
  );
  const { dq } = one.exact;
  const of = replayedOf(one.problem, roundedGradients(one, { dq: dq.map(() => 0) }, 'fp64'))!;
  const [given] = of.failed.given;
  const { factors, operand, offsets } = gradientTerms(of, given, {
    head: 0,
    begin: 0,
    end: queries,
  });
  const term = (i: number, key: number) =>
    factors[Math.floor(i / dim) * keys + key] * operand[offsets[key] + (i % dim)];
  return { of, given, exact: dq, term, scale: one.problem.scale };
});

type Short = 'bf16' | 'fp16';
type Order = 'ascending' | 'descending';

/** dQ whose sums are rounded to a format after each so many keys, in an order. */
function summed(format: Short, terms: number, order: Order): Float64Array {
  const { exact, term, scale } = drawn();
  const tiles = Array.from({ length: keys / terms }, (_, tile) => tile * terms);
  if (order === 'descending') tiles.reverse();
  return exact.map((_, i) => {
    let sum = 0;
    for (const first of tiles) {
      let added = 0;
      for (let key = first; key < first + terms; key++) added += term(i, key);
      sum = round(formats[format], sum + added);
    }
    return scale * sum;
  });
}

const lawOf = (format: Short, terms: number, order: Order) => ({
  accumulator: { format },
  terms,
  order,
});

/** Laws, among them such as are tried before others that resemble them. */
const laws: readonly (readonly [Short, number, Order])[] = [
  ['bf16', 32, 'descending'],
  ['bf16', 16, 'ascending'],
  ['fp16', 16, 'descending'],
  ['fp16', 1, 'ascending'],
];

describe('the law of a sum', () => {
  it('is that of errors which are half to one and a half times its own, and follow them', () => {
    const made = Array.from({ length: 400 }, (_, i) => Math.sin(i + 1));
    const likeness = (error: (x: number, i: number) => number) => {
      const sums = likenessSums();
      made.forEach((x, i) => {
        sums.add(error(x, i), x);
      });
      return sums.found();
    };
    for (const [slope, wanted] of [
      [0, false],
      [0.49, false],
      [0.51, true],
      [1.49, true],
      [1.51, false],
      [-1, false],
    ] as const)
      expect(isAlike(likeness((x) => slope * x)), String(slope)).toBe(wanted);
    expect(isAlike(likeness((x, i) => (i % 4 === 0 ? -x : x)))).toBe(false);
    expect(isAlike(likeness((x, i) => (i % 8 === 0 ? 0 : x)))).toBe(true);
  });

  it.each(laws)('is found by the errors that it makes: %s, every %i keys, %s', (...law) => {
    const { of, given } = drawn();
    const found = findNarrowLaw(of, { ...given, values: summed(...law) });
    expect(found).toMatchObject(lawOf(...law));
  });

  it('is none of errors that are drawn', () => {
    const { of, given, exact } = drawn();
    fc.assert(
      fc.property(fc.nat(1e6), (seed) => {
        const random = bellShaped(seed);
        const values = exact.map((x) => x + 2 ** -9 * random());
        expect(findNarrowLaw(of, { ...given, values })).toBeNull();
      }),
      { numRuns: 4 },
    );
  });

  it.each(laws)(
    'is told by the size of errors that are not its own: %s, every %i keys',
    (format, terms) => {
      const { of, given, exact } = drawn();
      const sums = summed(format, terms, 'ascending');
      // Of its size, and all the other way.
      const values = exact.map((x, i) => 2 * x - sums[i]);
      expect(findNarrowLaw(of, { ...given, values })).toBeNull();
      const told = (numbers: Float64Array) => lawsOfSize(of, { ...given, values: numbers }, 1.02);
      const [nearest, ...others] = told(values);
      expect(nearest).toMatchObject(lawOf(format, terms, 'ascending'));
      for (const { accumulator } of others) expect(accumulator.format).not.toBe(format);
      // Four times as large they are not of its size.
      const larger = exact.map((x, i) => x + 4 * (x - sums[i]));
      expect(told(larger)).not.toContainEqual(nearest);
    },
  );
});
