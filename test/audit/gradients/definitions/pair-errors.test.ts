import { describe, expect, it } from 'vitest';
import type { PairErrors } from '../../../../src/audit/gradients/bounds/pairs/pair-errors.js';
import { techniquePlaces } from '../../../../src/audit/gradients/bounds/gradient-techniques.js';
import {
  meanRounding,
  operandRounding,
  type PairArithmetic,
} from '../../../../src/audit/gradients/bounds/pair-arithmetic.js';
import type { PairTile } from '../../../../src/audit/gradients/bounds/pairs/pair-tile.js';
import { otherParts } from '../../../../src/audit/gradients/bounds/pairs/pair-sums.js';
import type { RowErrors } from '../../../../src/audit/gradients/bounds/pairs/weighed-pairs.js';
import { testSeed } from '../../../setup/effort.js';
import {
  coarseArithmetic,
  coarseRows,
  drawFrom,
  expectAlike,
  knownPairs,
  placesOf,
  roundingOf,
  someRanges,
  weighedTile,
} from './random-pairs.js';

const { lseInput, delta, pRecompute, pRound, dpAccumulate, dsRound } = techniquePlaces;

/** Worst cases and variances by technique, and the numbers of a pair. */
interface Defined {
  readonly worst: Readonly<Record<number, number>>;
  readonly variance: Readonly<Record<number, number>>;
  readonly numbers: Readonly<Partial<Record<keyof PairErrors, number>>>;
  readonly byOthers: readonly number[];
}

/** Pairs that are weighed, and the rows that they are of. */
interface WeighedTile extends Pick<PairTile, 'known' | 'weighed'> {
  readonly rows: readonly RowErrors[];
}

/** What is known of a pair before it is rounded, and of its row. */
function pairOf(tile: WeighedTile, i: number, at: number) {
  const { weighed, known } = tile;
  const w = Object.fromEntries(Object.entries(weighed).map(([name, of]) => [name, of[at]]));
  return {
    w: w as Record<keyof typeof weighed, number>,
    row: tile.rows[i],
    factor: known.factor?.[at] ?? 1,
  };
}

/** P as dV has it, which is multiplied by dropout's factor. */
function weightDefined(a: PairArithmetic, tile: WeighedTile, i: number, at: number): Defined {
  const { w, row, factor } = pairOf(tile, i, at);
  const before = w.weightError * (1 + row.weight) + row.weight * w.weight;
  const rounded = roundingOf(a.p, w.weight, before);
  const kept = factor + factor * a.dropout;
  const ofFactor = a.dropout * factor * w.weight;
  return {
    worst: {
      [lseInput]: row.weight * w.weight * kept,
      [pRecompute]: w.weightError * (1 + row.weight) * kept + ofFactor,
      [pRound]: rounded.worst * kept,
    },
    variance: {
      [lseInput]: row.weightVariance * (w.weight * factor) ** 2,
      [pRecompute]: w.weightVariance * factor ** 2,
      [pRound]: rounded.variance * factor ** 2,
    },
    numbers: {
      value: w.weight * factor,
      unshifted: (w.weight * factor) / (1 + row.weightShift),
      sloped: 0,
      known: rounded.known * factor,
      systematic: w.typicalWeight * factor + ofFactor,
      ofWeights: row.commonWeight * w.weight * factor,
      ofScores: w.commonWeight * factor,
      ofProducts: 0,
      ofMeans: 0,
    },
    byOthers: rounded.byOthers.map((x) => x * factor),
  };
}

/** dT, technique by technique: Theorem 7. */
function derivativeDefined(a: PairArithmetic, tile: WeighedTile, i: number, at: number): Defined {
  const { w, row } = pairOf(tile, i, at);
  const D = row.mean + row.meanShift;
  const exact = w.derivative - row.mean;
  const x = w.derivative - D;
  const h = w.derivativeError + a.products.worst * Math.abs(D);
  const ofMean = a.elementwise * (Math.abs(x) + Math.abs(row.mean));
  const R = Math.abs(x) + h + ofMean + row.worstMean;
  const rounded = roundingOf(
    a.weights,
    w.weight,
    w.weightError * (1 + row.weight) + row.weight * w.weight,
  );
  const largest = w.weight + w.weightError + rounded.worst;
  const lambda = 1 + row.weight;
  const g = w.slope + w.slopeError;
  const steep = w.slope * w.weight;
  const dT = steep * x;
  const own = {
    [lseInput]: row.weight * Math.abs(dT),
    [delta]: lambda * row.worstMean * steep,
    [pRecompute]: lambda * (g * w.weightError * R + w.slopeError * largest * R),
    [pRound]: lambda * g * rounded.worst * R,
    [dpAccumulate]: lambda * g * w.weight * h,
    [dsRound]:
      lambda *
      (g * (w.weight * ofMean + 3 * a.elementwise * largest * R) + 3 * a.underflow * (1 + R)),
  };
  const ofDs = roundingOf(
    a.ds,
    dT,
    Object.values(own).reduce((sum, error) => sum + error, 0),
  );
  return {
    worst: { ...own, [dsRound]: own[dsRound] + ofDs.worst },
    variance: {
      [lseInput]: row.weightVariance * dT ** 2,
      [delta]: row.meanVariance * steep ** 2,
      [pRecompute]: (w.slope * x) ** 2 * w.weightVariance + (w.weight * x) ** 2 * w.slopeVariance,
      [pRound]: meanRounding * (a.weightRounding * dT) ** 2,
      [dpAccumulate]: steep ** 2 * (w.derivativeVariance + (a.products.walk * D) ** 2),
      [dsRound]:
        a.elementwiseVariance * (steep ** 2 * (x ** 2 + row.mean ** 2) + 2 * dT ** 2) +
        ofDs.variance,
    },
    numbers: {
      value: dT,
      unshifted: (w.weight / (1 + row.weightShift)) * w.slope * exact,
      sloped: steep,
      known: ofDs.known,
      systematic:
        w.slope * w.typicalWeight * Math.abs(x) +
        w.typicalSlope * w.weight * Math.abs(x) +
        steep * w.typicalDerivative +
        3 * a.underflow,
      ofWeights: row.commonWeight * dT,
      ofScores: w.slope * w.commonWeight * x,
      ofProducts: steep * w.commonDerivative,
      ofMeans: steep * row.commonMean,
    },
    byOthers: ofDs.byOthers,
  };
}

function expectDefined(seed: number, isWhole: boolean, changes: Partial<PairArithmetic>): void {
  const draw = drawFrom(seed);
  const arithmetic = coarseArithmetic(draw, changes);
  const known = knownPairs(draw, isWhole);
  const rows = coarseRows(draw, 4);
  const ranges = someRanges(draw, rows.length);
  const found = weighedTile(arithmetic, known, rows, ranges);
  const { errors } = found;
  const tile = { known: found.known, weighed: found.weighed, rows };
  const check = (define: typeof weightDefined) => {
    for (const { i, at } of placesOf(ranges)) {
      const { worst, variance, numbers, byOthers } = define(arithmetic, tile, i, at);
      for (const place of Object.keys(worst).map(Number)) {
        const names = [`worst${place}`, `variance${place}`] as (keyof PairErrors)[];
        expectAlike(errors[names[0]][at], worst[place], `worst of ${place} at ${at}`);
        expectAlike(errors[names[1]][at], variance[place], `variance of ${place} at ${at}`);
      }
      const size = Math.abs(numbers.value ?? 0);
      for (const [name, x] of Object.entries(numbers))
        expectAlike(
          errors[name as 'value'][at],
          x,
          `${name} at ${at}`,
          name === 'known' ? size : 0,
        );
      byOthers.forEach((x, k) => {
        expectAlike(errors[otherParts[k]][at], x, `factor ${k} at ${at}`, size);
      });
    }
  };
  found.errWeights();
  check(weightDefined);
  found.errDerivatives();
  check(derivativeDefined);
  const seen = new Set([...placesOf(ranges)].map(({ at }) => at));
  expect(errors.value.every((x, at) => seen.has(at) || x === 0)).toBe(true);
}

const exactly = operandRounding('fp64', 2 ** -24, [], 1);
const cases: Readonly<Record<string, Partial<PairArithmetic>>> = {
  'with factors before roundings': {},
  'under a softcap': { softcap: 1.2 },
  'of P and dS that are rounded once': {
    p: operandRounding('bf16', 2 ** -24, [], 1),
    ds: operandRounding('fp16', 2 ** -24, [], 1),
  },
  'of P with dropout’s factor': { p: operandRounding('fp16', 2 ** -24, [0.8], 1) },
  'of operands that are not rounded': { p: exactly, weights: exactly, ds: exactly },
  'among subnormals': {
    ds: operandRounding('e4m3', 2 ** -24, [0.1, 0.7, 0.07], 1),
    p: operandRounding('e4m3', 2 ** -24, [0.7], 1),
  },
};

describe('the errors of P and dS of a pair are those of Theorem 7, technique by technique', () => {
  it.each(Object.entries(cases))('%s', (_, changes) => {
    for (const [k, isWhole] of [true, false].entries())
      expectDefined((testSeed % 1_000_003) + 29 + k, isWhole, changes);
  });
});
