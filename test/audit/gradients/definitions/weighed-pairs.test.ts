import { describe, expect, it } from 'vitest';
import {
  meanRounding,
  type PairArithmetic,
} from '../../../../src/audit/gradients/bounds/pair-arithmetic.js';
import type {
  KnownPairs,
  RowErrors,
  WeighedPairs,
} from '../../../../src/audit/gradients/bounds/pairs/weighed-pairs.js';
import { testSeed } from '../../../setup/effort.js';
import {
  coarseArithmetic,
  coarseRows,
  drawFrom,
  expectAlike,
  knownPairs,
  placesOf,
  someRanges,
  weighedTile,
} from './random-pairs.js';

type Weighed = Record<keyof WeighedPairs, number>;

/** A score with what it may be off by. */
interface Off {
  readonly value: number;
  readonly worst: number;
  readonly typical: number;
  readonly variance: number;
}

const largerOf = (...all: readonly number[]) => all.reduce((most, x) => (x > most ? x : most));
const smallerOf = (a: number, b: number) => (a < b ? a : b);

/** The mean square of partial sums: "Sums of products". */
function partialsOf(size: number, sum: number, known: number | undefined, factor: number): number {
  const ofSizes = ((size + Math.abs(sum)) / 2) ** 2;
  return known === undefined ? ofSizes : smallerOf(ofSizes, known * factor ** 2);
}

/** q·k times the scale: Theorem 6 before a softcap. */
function scaledScore(a: PairArithmetic, known: KnownPairs, at: number, isApart: boolean): Off {
  const value = a.scale * known.dot[at];
  const size = Math.abs(a.scale) * known.dotSize[at];
  const partials = partialsOf(size, value, known.dotPartials?.[at], a.scale);
  const cut = isApart ? (a.scores.toZero * value) ** 2 / 12 : 0;
  return {
    value,
    worst: a.scores.worst * size + a.operations * Math.abs(value),
    typical: isApart ? 0 : (a.scores.toZero + a.elementwise / 2) * Math.abs(value),
    variance: a.scores.walk ** 2 * partials + a.operationVariance * value ** 2 + cut,
  };
}

/** The same behind a softcap, with its slope 1 − tanh². */
function cappedScore(a: PairArithmetic, cap: number, before: Off) {
  const z = Math.tanh(before.value / cap);
  const ofZ = before.worst / cap + a.tanh * Math.abs(z) + a.tanhFloor;
  const slope = 1 - z ** 2;
  const steepest = smallerOf(1, slope + before.worst / cap);
  const value = cap * z;
  const size = Math.abs(value);
  const varianceOfZ = before.variance / cap ** 2 + a.tanhVariance * z ** 2 + a.tanhFloor ** 2 / 3;
  return {
    slope,
    slopeError: smallerOf(2, 2 * Math.abs(z) * ofZ + ofZ ** 2 + 4 * a.elementwise),
    typicalSlope:
      2 * Math.abs(z) * (before.typical / cap + a.typicalTanh * Math.abs(z)) + a.elementwise,
    slopeVariance: 4 * z ** 2 * varianceOfZ + a.elementwiseVariance,
    score: {
      value,
      worst: steepest * before.worst + a.tanh * size + a.tanhFloor * cap,
      typical: steepest * before.typical + a.typicalTanh * size,
      variance:
        steepest ** 2 * before.variance +
        a.tanhVariance * value ** 2 +
        (a.tanhFloor ** 2 / 3) * cap ** 2,
    },
  };
}

/** P with its errors: Theorem 6. */
function weightOf(a: PairArithmetic, known: KnownPairs, at: number, row: RowErrors) {
  const isApart = a.tellsApart && a.softcap === null;
  const before = scaledScore(a, known, at, isApart);
  const uncapped = { score: before, slope: 1, slopeError: 0, typicalSlope: 0, slopeVariance: 0 };
  const { score, ...slopes } = a.softcap === null ? uncapped : cappedScore(a, a.softcap, before);
  const [addend, addendSize] = [known.addend?.[at] ?? 0, known.addendSize?.[at] ?? 0];
  const size = Math.abs(score.value);
  const exponent = score.value + addend - row.denominator;
  const worst =
    score.worst + a.operations * (size + 2 * addendSize) + 2 * a.elementwise * Math.abs(exponent);
  const typical = score.typical + a.elementwise * ((isApart ? 0 : size / 2) + addendSize);
  const variance =
    score.variance +
    a.operationVariance * (score.value ** 2 + (2 * addendSize) ** 2) +
    a.elementwiseVariance * exponent ** 2;
  const shifted = 1 + row.weightShift;
  const weight = Math.exp(smallerOf(exponent, 700)) * shifted;
  const ofRest = a.exponential * weight + 2 * a.underflow;
  const isSmall = worst < 1;
  const grown = Math.exp(smallerOf(exponent + worst, 700)) * shifted;
  const weightError =
    (isSmall ? weight * (worst + worst ** 2) : grown) * (1 + a.exponential) + ofRest;
  const largest =
    worst + largerOf(Math.abs(known.dot[at]), Math.abs(before.value), size + addendSize);
  return {
    ...slopes,
    weight,
    weightError: largest < a.largestScore ? weightError : Infinity,
    typicalWeight: isSmall
      ? smallerOf(weight * (typical + typical ** 2) + 2 * a.underflow, weightError)
      : weightError,
    commonWeight: isSmall && isApart ? weight * a.commonScores * before.value : 0,
    weightVariance: isSmall
      ? weight ** 2 * (smallerOf(variance, worst ** 2) + a.exponential ** 2)
      : 0,
  };
}

/** dP with its errors: Theorem 6. */
function derivativeOf(a: PairArithmetic, known: KnownPairs, at: number) {
  const factor = known.factor?.[at] ?? 1;
  const derivative = known.product[at] * factor;
  const size = Math.abs(derivative);
  const sizes = known.productSize[at] * factor;
  const floor = 2 ** 16 * a.underflow;
  const error =
    (a.products.worst * sizes + (a.dropout + a.productRounding) * size) * (1 + 2 ** -8) + floor;
  const largest = largerOf(Math.abs(known.product[at]), size) + error;
  const partials = partialsOf(sizes, derivative, known.productPartials?.[at], factor);
  return {
    derivative,
    derivativeError: largest < a.largestProduct ? error : Infinity,
    typicalDerivative: floor + (a.tellsApart ? 0 : (a.products.toZero + a.dropout) * size),
    derivativeVariance:
      a.products.walk ** 2 * partials +
      (a.tellsApart ? (a.products.toZero * derivative) ** 2 / 12 : 0) +
      meanRounding * (a.productRounding * derivative) ** 2,
    commonDerivative: a.tellsApart ? a.commonProducts * derivative : 0,
  };
}

/** Holds every number that is found of a tile to its definition; what rows do not see is left as it was. */
function expectDefined(seed: number, isWhole: boolean, changes: Partial<PairArithmetic>): void {
  const draw = drawFrom(seed);
  const arithmetic = coarseArithmetic(draw, changes);
  const known = knownPairs(draw, isWhole);
  const rows = coarseRows(draw, 5);
  const ranges = someRanges(draw, rows.length);
  const { weighed } = weighedTile(arithmetic, known, rows, ranges);
  const seen = new Set<number>();
  for (const { i, at } of placesOf(ranges)) {
    seen.add(at);
    const wanted: Weighed = {
      ...weightOf(arithmetic, known, at, rows[i]),
      ...derivativeOf(arithmetic, known, at),
    };
    for (const name of Object.keys(wanted) as (keyof Weighed)[])
      expectAlike(weighed[name][at], wanted[name], `${name} at ${at}`);
  }
  const unseen = weighed.weight.filter((_, at) => !seen.has(at));
  expect(unseen.every((x) => x === 0)).toBe(true);
}

const cases: Readonly<Record<string, Partial<PairArithmetic>>> = {
  'of 16 bits': { tellsApart: false },
  'of fp32, with what all have in common': { tellsApart: true },
  'under a softcap': { softcap: 1.4, tellsApart: true },
  'under a softcap in 16 bits': { softcap: 0.8, tellsApart: false, tanhFloor: 0.4 },
  'of scores that are hardly known': { operations: 0.4, tellsApart: true },
  'beyond what scores and dP are written in': { largestScore: 1, largestProduct: 0.6 },
  'of a steep softcap': { softcap: 0.3, tanh: 0.5 },
};

describe('the errors of P and dP of a pair are those of Theorem 6', () => {
  it.each(Object.entries(cases))('%s', (_, changes) => {
    for (const [k, isWhole] of [true, false].entries())
      expectDefined((testSeed % 1_000_003) + 17 + k, isWhole, changes);
  });

  it('and exponents end at 700', () => {
    const draw = drawFrom((testSeed % 1_000_003) + 3);
    const arithmetic = coarseArithmetic(draw, { scale: 600, operations: 0 });
    const known = knownPairs(draw, true);
    const rows = coarseRows(draw, 2);
    const ranges = someRanges(draw, 2);
    const { weighed } = weighedTile(arithmetic, known, rows, ranges);
    for (const { i, at } of placesOf(ranges)) {
      const wanted = weightOf(arithmetic, known, at, rows[i]);
      expectAlike(weighed.weight[at], wanted.weight, `P at ${at}`);
      expectAlike(weighed.weightError[at], wanted.weightError, `its error at ${at}`);
    }
  });
});
