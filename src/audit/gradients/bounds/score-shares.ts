import type { Gradient } from '../../../../oracles/index.js';
import type { FormatName } from '../../../formats/index.js';
import { createFinish, noErrors, up } from './finish-gradient.js';
import type { GradientPremises } from './gradient-premises.js';
import {
  addShare,
  emptyTechniqueShares,
  pairPlaces,
  techniquePlaces,
  type TechniqueShares,
} from './gradient-techniques.js';
import { emptyGradientBound, type GradientTechniqueBound } from './group-bounds.js';
import {
  meanRounding,
  operandRounding,
  sumErrors,
  type PairArithmetic,
} from './pair-arithmetic.js';
import { createPairTile } from './pairs/pair-tile.js';
import type { RowErrors, WeighedPairs } from './pairs/weighed-pairs.js';

/** The errors of dS = P (dP − D) of one pair, before a softcap's slope and the scale. Used again from pair to pair. */
export interface ScoreShare {
  /** The error at worst, the part that does not average out, the variance of the rest, the rounding that is known. */
  worst: number;
  systematic: number;
  variance: number;
  known: number;
  /** The part of the variance that is the row's, from its LSE and its D: all pairs of the row share it. */
  ofRow: number;
  /** The largest that dS may be. */
  magnitude: number;
  /** The shift of dS by the stored forward; P. */
  shift: number;
  weight: number;
  /** The parts of `worst` and `variance` by technique, a row of one pair. */
  readonly techniques: TechniqueShares;
}

/** Numbers of pairs of one sum that err alike: in P, and in dP. */
export interface AlikePairs {
  scores: number;
  products: number;
}

/** The arithmetic of dS that is a gradient by itself: dS is rounded once at most, without any factor. */
export function scoreArithmetic(
  arithmetic: PairArithmetic,
  { ds, elementwise }: GradientPremises,
): PairArithmetic {
  return { ...arithmetic, ds: operandRounding(ds, elementwise, [], 1) };
}

/** A function that writes the share of pair `at` of a tile that is weighed: Theorem 7 with a slope of 1. */
export function createScoreSharer(
  arithmetic: PairArithmetic,
): (
  weighed: WeighedPairs,
  at: number,
  row: RowErrors,
  alike: AlikePairs,
  share: ScoreShare,
) => void {
  const { elementwise, elementwiseVariance, underflow, products, weightRounding } = arithmetic;
  const { round, roundings } = createPairTile(arithmetic, {
    hasPartials: false,
    hasAddends: false,
    hasFactors: false,
  });
  return (weighed, at, row, alike, share) => {
    const weight = weighed.weight[at];
    const ofWeight = weighed.weightError[at];
    const exact = weighed.derivative[at] - row.mean;
    const shifted = exact - row.meanShift;
    const size = Math.abs(shifted);
    const grown = 1 + row.weight;
    const ofMean = elementwise * (size + Math.abs(row.mean));
    const ofDerivative =
      weighed.derivativeError[at] + products.worst * Math.abs(row.mean + row.meanShift);
    // Where dS is made of a P that is written.
    roundings.numbers[0] = weight;
    roundings.errors[0] = ofWeight * grown + row.weight * weight;
    round('weights', 0, 1);
    const ofRounding = roundings.worst[0];
    const most = weight + ofWeight + ofRounding;
    const reach = size + ofDerivative + ofMean + row.worstMean;
    const dS = weight * shifted;
    const dSSize = Math.abs(dS);
    const inner =
      row.weight * dSSize +
      grown *
        (row.worstMean * weight +
          (ofWeight + ofRounding) * reach +
          weight * (ofDerivative + ofMean) +
          3 * elementwise * most * reach +
          3 * underflow * (1 + reach));
    roundings.numbers[0] = dS;
    roundings.errors[0] = inner;
    round('ds', 0, 1);
    const ofElementwise =
      grown * (weight * ofMean + 3 * elementwise * most * reach + 3 * underflow * (1 + reach));
    share.worst = inner + roundings.worst[0];
    share.known = roundings.known[0];
    share.magnitude = dSSize + share.worst;
    share.weight = weight;
    share.shift = dS - (weight / (1 + row.weightShift)) * exact;
    share.systematic =
      (weighed.typicalWeight[at] + Math.abs(weighed.commonWeight[at])) * size +
      weight * (weighed.typicalDerivative[at] + Math.abs(weighed.commonDerivative[at])) +
      3 * underflow +
      (row.typicalWeight + Math.abs(row.commonWeight)) * dSSize +
      (row.typicalMean + Math.abs(row.commonMean)) * weight;
    const equal = Math.min(alike.scores, alike.products);
    const { techniques } = share;
    techniques.worst.fill(0);
    techniques.variance.fill(0);
    const { lseInput, delta, pRecompute, pRound, dpAccumulate, dsRound } = techniquePlaces;
    const add = (place: number, worst: number, variance: number) => {
      addShare(techniques, 0, place, worst, variance);
    };
    const byLse = row.weightVariance * dS ** 2 * alike.scores;
    const byMean = row.meanVariance * weight ** 2 * equal;
    add(lseInput, row.weight * dSSize, byLse);
    add(delta, grown * row.worstMean * weight, byMean);
    add(
      pRecompute,
      grown * ofWeight * reach,
      weighed.weightVariance[at] * size ** 2 * alike.scores,
    );
    add(pRound, grown * ofRounding * reach, meanRounding * (weightRounding * dS) ** 2);
    add(
      dpAccumulate,
      grown * weight * ofDerivative,
      weight ** 2 *
        (weighed.derivativeVariance[at] + (products.walk * (row.mean + row.meanShift)) ** 2) *
        alike.products,
    );
    add(
      dsRound,
      ofElementwise + roundings.worst[0],
      roundings.variance[0] * equal +
        elementwiseVariance * (weight ** 2 * (size ** 2 + row.mean ** 2) + 2 * dS ** 2),
    );
    share.variance = techniques.variance.reduce((sum, x) => sum + x, 0);
    share.ofRow = byLse + byMean + elementwiseVariance * (weight * row.mean) ** 2;
  };
}

/** A share of nothing yet. */
export function emptyScoreShare(): ScoreShare {
  return {
    worst: 0,
    systematic: 0,
    variance: 0,
    known: 0,
    ofRow: 0,
    magnitude: 0,
    shift: 0,
    weight: 0,
    techniques: emptyTechniqueShares(1),
  };
}

/** Sums of the shares of pairs, element by element of the gradient that their dS add up to. */
export class ScoreSums {
  readonly #sums: Readonly<
    Record<Exclude<keyof ScoreShare, 'weight' | 'techniques'>, Float64Array>
  >;
  /** Shares of all elements together, a row. */
  readonly #techniques = emptyTechniqueShares(1);
  #alike = 1;

  constructor(length: number) {
    const numbers = () => new Float64Array(length);
    this.#sums = {
      worst: numbers(),
      systematic: numbers(),
      variance: numbers(),
      known: numbers(),
      ofRow: numbers(),
      magnitude: numbers(),
      shift: numbers(),
    };
  }

  add(at: number, share: ScoreShare, { scores, products }: AlikePairs): void {
    const { worst, systematic, variance, known, ofRow, magnitude, shift } = this.#sums;
    worst[at] += share.worst;
    systematic[at] += share.systematic;
    variance[at] += share.variance;
    known[at] += share.known;
    ofRow[at] += share.ofRow;
    magnitude[at] += share.magnitude;
    shift[at] += share.shift;
    for (let place = 0; place < pairPlaces; place++) {
      this.#techniques.worst[place] += share.techniques.worst[place];
      this.#techniques.variance[place] += share.techniques.variance[place];
    }
    this.#alike = Math.max(this.#alike, Math.min(scores, products));
  }

  /** Adds the variance from an error of D that the pairs which were added share. */
  addVariance(at: number, variance: number): void {
    this.#sums.variance[at] += variance;
    this.#sums.ofRow[at] += variance;
    addShare(this.#techniques, 0, techniquePlaces.delta, 0, variance);
  }

  /** Marks an element of which nothing is known. */
  giveUp(at: number): void {
    this.#sums.worst[at] = Infinity;
  }

  /**
   * The bounds of the sums: Theorems 8 and 9.
   * @param terms the largest number of terms of a sum
   * @param format the format that the sums are stored in
   */
  finish(
    exact: Gradient,
    terms: number,
    premises: GradientPremises,
    arithmetic: PairArithmetic,
    format: FormatName,
  ): GradientTechniqueBound {
    const { worst, systematic, variance, known, ofRow, magnitude, shift } = this.#sums;
    const bound = emptyGradientBound(1, exact.values.length, 0);
    const apart = new Float64Array(exact.values.length);
    const sum = sumErrors(terms, premises);
    const finish = createFinish(arithmetic, format, { sum, growth: 1 });
    const errors = noErrors({ knownOf: techniquePlaces.dsRound, alike: this.#alike });
    for (let at = 0; at < exact.values.length; at++) {
      errors.shift = shift[at];
      errors.pairs = worst[at];
      errors.pairVariance = variance[at];
      errors.known = known[at];
      errors.magnitude = magnitude[at];
      errors.systematic = systematic[at];
      // A sum without terms is an exact zero.
      errors.floor = worst[at] > 0 ? 3 * terms * premises.underflow : 0;
      finish.element(bound, 0, at, exact, errors);
      apart[at] = Math.sqrt(Math.max(0, bound.deviation[at] ** 2 - ofRow[at]));
    }
    for (let place = 0; place < pairPlaces; place++)
      addShare(
        bound.techniques,
        0,
        place,
        up * this.#techniques.worst[place],
        this.#techniques.variance[place],
      );
    return { ...bound, apart };
  }
}
