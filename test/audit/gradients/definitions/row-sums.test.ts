import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createPairMemory } from '../../../../src/audit/gradients/bounds/pairs/pair-memory.js';
import { coarseArithmetic, coarseRows, drawFrom, expectAlike, tile } from './random-pairs.js';

const dims = { qkDim: 1, vDim: 1 };
const features = { hasAddends: false, hasFactors: false };
const memory = createPairMemory(coarseArithmetic(drawFrom(1)), dims, features);

/** The row that the pairs are of. */
const row = 2;

describe('sums over the keys of a row', () => {
  it('are those of its pairs, each as it is defined', () => {
    fc.assert(
      fc.property(fc.nat(1e6), fc.integer({ min: 1, max: 9 }), (seed, count) => {
        const { between, flips } = drawFrom(seed);
        const draw = (low: number, high: number) =>
          Float64Array.from({ length: count + 3 }, () => between(low, high));
        const pairs = {
          weight: draw(0, 1),
          weightError: draw(0, 0.5),
          derivative: draw(-2, 2),
          derivativeError: draw(0, 0.5),
          typicalWeight: draw(0, 0.3),
          typicalDerivative: draw(0, 0.3),
          weightVariance: draw(0, 0.2),
          derivativeVariance: draw(0, 0.2),
          commonWeight: draw(-0.3, 0.3),
        };
        const mean = between(-1, 1);
        const alike = Array.from({ length: count }, () => ({
          scores: flips() ? 1 : [2, 15, 16, 40][Math.floor(between(0, 4))],
          products: flips() ? 1 : 3,
        }));
        const { weighed, ...pairTile } = memory.tile;
        for (const name of Object.keys(pairs) as (keyof typeof pairs)[])
          weighed[name].set(pairs[name], row * tile);
        pairTile.setRows(coarseRows(drawFrom(seed), row + 1).map((one) => ({ ...one, mean })));
        // A row begins anywhere in its tile.
        pairTile.setRanges([[], [], [{ begin: 3, end: count + 3 }]]);
        alike.forEach(({ scores, products }, j) => {
          memory.sides.keys.alikeScores.view[j + 3] = scores;
          memory.sides.keys.alikeProducts.view[j + 3] = products;
        });
        pairTile.clearSums();
        pairTile.addToRows();
        const sums = pairTile.sumsOf(row);
        const isEmpty = Object.values(pairTile.sumsOf(row - 1)).every((x) => x === 0);
        expect(isEmpty).toBe(true);

        const all = alike.map(({ scores, products }, j) => ({
          p: pairs.weight[j + 3],
          ofP: pairs.weightError[j + 3],
          dp: pairs.derivative[j + 3],
          ofDp: pairs.derivativeError[j + 3],
          typicalP: pairs.typicalWeight[j + 3],
          typicalDp: pairs.typicalDerivative[j + 3],
          // Alike keys err as one.
          varianceOfP: pairs.weightVariance[j + 3] * scores,
          varianceOfDp: pairs.derivativeVariance[j + 3] * products,
          common: pairs.commonWeight[j + 3],
          scores,
        }));
        const sum = (term: (pair: (typeof all)[number]) => number) =>
          all.reduce((so, pair) => so + term(pair), 0);
        let [partial, largest] = [0, 0];
        for (const { p, dp } of all) {
          partial += p * dp;
          largest = Math.max(largest, Math.abs(partial));
        }
        const wanted = {
          size: sum(({ p, dp }) => p * Math.abs(dp)),
          squares: sum(({ p, dp }) => p ** 2 * dp ** 2),
          // (P + ε)(dP + δ) − P dP at worst.
          errors: sum(
            ({ p, ofP, dp, ofDp }) => (p + ofP) * (Math.abs(dp) + ofDp) - p * Math.abs(dp),
          ),
          typical: sum(({ p, dp, typicalP, typicalDp }) => typicalP * Math.abs(dp) + p * typicalDp),
          variance: sum(
            ({ p, dp, varianceOfP, varianceOfDp }) => varianceOfP * dp ** 2 + p ** 2 * varianceOfDp,
          ),
          scatter: sum(({ ofP, dp }) => ofP * Math.abs(dp - mean)),
          typicalScatter: sum(({ typicalP, dp }) => typicalP * Math.abs(dp - mean)),
          scatterVariance: sum(({ varianceOfP, dp }) => varianceOfP * (dp - mean) ** 2),
          weightErrors: sum(({ ofP }) => ofP),
          typicalWeights: sum(({ typicalP }) => typicalP),
          commonErrors: sum(({ common, dp }) => common * dp),
          commonScatter: sum(({ common, dp }) => common * dp) - mean * sum(({ common }) => common),
          commonWeights: sum(({ common }) => common),
          product: partial,
          largestProduct: largest,
          weightVariance: sum(({ varianceOfP }) => varianceOfP),
          // From sixteen on they are one, and counted; fewer are by chance.
          alikeAdditions: all.filter(({ scores }) => scores >= 16).length,
          squaredAdditions: sum(({ scores }) => (scores < 16 ? scores : 0)),
        };
        expect(Object.keys(sums).sort()).toEqual(Object.keys(wanted).sort());
        for (const name of Object.keys(wanted) as (keyof typeof wanted)[]) {
          const noise = name.startsWith('common') || name === 'product' ? 2 ** -44 : 0;
          if (Math.abs(sums[name] - wanted[name]) > noise)
            expectAlike(sums[name], wanted[name], name);
        }
      }),
      { numRuns: 100 },
    );
  });
});
