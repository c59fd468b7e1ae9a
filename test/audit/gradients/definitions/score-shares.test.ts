import { describe, expect, it } from 'vitest';
import { techniquePlaces } from '../../../../src/audit/gradients/bounds/gradient-techniques.js';
import {
  meanRounding,
  operandRounding,
  type PairArithmetic,
} from '../../../../src/audit/gradients/bounds/pair-arithmetic.js';
import {
  createScoreSharer,
  emptyScoreShare,
  ScoreSums,
  type AlikePairs,
} from '../../../../src/audit/gradients/bounds/score-shares.js';
import type {
  RowErrors,
  WeighedPairs,
} from '../../../../src/audit/gradients/bounds/pairs/weighed-pairs.js';
import { anyGradientPremises } from '../../../../src/audit/gradients/bounds/gradient-premises.js';
import { testSeed } from '../../../setup/effort.js';
import { filledProblem } from '../../../setup/problems.js';
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

/** Theorem 7 with a slope of 1. */
function defined(
  a: PairArithmetic,
  weighed: WeighedPairs,
  at: number,
  row: RowErrors,
  alike: AlikePairs,
) {
  const P = weighed.weight[at];
  const e = weighed.weightError[at];
  const D = row.mean + row.meanShift;
  const x = weighed.derivative[at] - D;
  const lambda = 1 + row.weight;
  const h = weighed.derivativeError[at] + a.products.worst * Math.abs(D);
  const ofMean = a.elementwise * (Math.abs(x) + Math.abs(row.mean));
  const R = Math.abs(x) + h + ofMean + row.worstMean;
  const ofP = roundingOf(a.weights, P, e * lambda + row.weight * P);
  const largest = P + e + ofP.worst;
  const dS = P * x;
  const worst = {
    [lseInput]: row.weight * Math.abs(dS),
    [delta]: lambda * row.worstMean * P,
    [pRecompute]: lambda * e * R,
    [pRound]: lambda * ofP.worst * R,
    [dpAccumulate]: lambda * P * h,
    [dsRound]: lambda * (P * ofMean + 3 * a.elementwise * largest * R + 3 * a.underflow * (1 + R)),
  };
  const sum = (of: Readonly<Record<number, number>>) =>
    Object.values(of).reduce((all, y) => all + y, 0);
  const ofDs = roundingOf(a.ds, dS, sum(worst));
  const both = Math.min(alike.scores, alike.products);
  const variance = {
    [lseInput]: alike.scores * row.weightVariance * dS ** 2,
    [delta]: both * row.meanVariance * P ** 2,
    [pRecompute]: alike.scores * weighed.weightVariance[at] * x ** 2,
    [pRound]: meanRounding * a.weightRounding ** 2 * dS ** 2,
    [dpAccumulate]:
      alike.products * P ** 2 * (weighed.derivativeVariance[at] + a.products.walk ** 2 * D ** 2),
    [dsRound]:
      both * ofDs.variance +
      a.elementwiseVariance * (P ** 2 * x ** 2 + P ** 2 * row.mean ** 2 + 2 * dS ** 2),
  };
  worst[dsRound] += ofDs.worst;
  return {
    worst,
    variance,
    numbers: {
      worst: sum(worst),
      variance: sum(variance),
      known: ofDs.known,
      magnitude: Math.abs(dS) + sum(worst),
      weight: P,
      shift: dS - (P / (1 + row.weightShift)) * (weighed.derivative[at] - row.mean),
      systematic:
        (weighed.typicalWeight[at] + Math.abs(weighed.commonWeight[at])) * Math.abs(x) +
        P * (weighed.typicalDerivative[at] + Math.abs(weighed.commonDerivative[at])) +
        3 * a.underflow +
        (row.typicalWeight + Math.abs(row.commonWeight)) * Math.abs(dS) +
        (row.typicalMean + Math.abs(row.commonMean)) * P,
    },
  };
}

describe('the share of a pair in dBias and dSink is that of Theorem 7 with a slope of 1', () => {
  it.each([
    ['in fp32', { tellsApart: true, ds: operandRounding('fp32', 2 ** -24, [], 1) }],
    ['in bf16', { tellsApart: false, ds: operandRounding('bf16', 2 ** -24, [], 1) }],
    ['rounded twice', { ds: operandRounding('bf16', 2 ** -24, [], 2) }],
  ])('%s', (_, changes) => {
    const draw = drawFrom((testSeed % 1_000_003) + 41);
    const arithmetic = coarseArithmetic(draw, changes);
    const known = knownPairs(draw, true);
    const rows = coarseRows(draw, 2);
    const ranges = someRanges(draw, 2);
    const { weighed } = weighedTile(arithmetic, known, rows, ranges);
    const shareOf = createScoreSharer(arithmetic);
    const share = emptyScoreShare();
    for (const { i, at } of placesOf(ranges)) {
      const alike = { scores: 1 + draw.count(4), products: 1 + draw.count(4) };
      shareOf(weighed, at, rows[i], alike, share);
      const { worst, variance, numbers } = defined(arithmetic, weighed, at, rows[i], alike);
      for (const place of Object.keys(worst).map(Number)) {
        expectAlike(share.techniques.worst[place], worst[place as 0], `worst of ${place}`);
        expectAlike(share.techniques.variance[place], variance[place as 0], `variance of ${place}`);
      }
      for (const [name, x] of Object.entries(numbers)) expectAlike(share[name as 'worst'], x, name);
    }
    expect(share.weight).not.toBe(0);
  });
});

describe('the variance of a sum', () => {
  it('has the part that pairs of a row share, which what rows are off by apart has not', () => {
    const draw = drawFrom((testSeed % 1_000_003) + 43);
    const arithmetic = coarseArithmetic(draw);
    const problem = filledProblem({ queries: 1, keys: 1, dim: 1, format: 'fp64' }, () => 1);
    const premises = anyGradientPremises(problem, 'fp64');
    const zeros = new Float64Array(2);
    const exact = { values: zeros, radius: zeros, magnitude: zeros };
    const [variance, ofRow, ofMean] = [
      draw.between(2, 3),
      draw.between(0.5, 1),
      draw.between(1, 4),
    ];
    const finished = (more: number) => {
      const sums = new ScoreSums(2);
      for (const at of [0, 1]) {
        const share = { ...emptyScoreShare(), worst: 1, variance, ofRow };
        sums.add(at, share, { scores: 1, products: 1 });
      }
      if (more > 0) sums.addVariance(1, more);
      return sums.finish(exact, 1, premises, arithmetic, 'fp64');
    };
    const { deviation, apart } = finished(ofMean);
    const plain = finished(0);
    for (const at of [0, 1]) {
      expect(plain.deviation[at] ** 2).toBeCloseTo(variance, 9);
      expect(plain.apart![at] ** 2).toBeCloseTo(variance - ofRow, 9);
      expect(deviation[at] ** 2).toBeCloseTo(variance + at * ofMean, 9);
      expect(apart![at]).toBeCloseTo(plain.apart![at], 9);
    }
  });
});
