import { techniquePlaces } from '../../../../src/audit/gradients/bounds/gradient-techniques.js';
import type { PairArithmetic } from '../../../../src/audit/gradients/bounds/pair-arithmetic.js';
import { otherParts } from '../../../../src/audit/gradients/bounds/pairs/pair-sums.js';
import { createPairTile } from '../../../../src/audit/gradients/bounds/pairs/pair-tile.js';
import type { RowSums } from '../../../../src/audit/gradients/bounds/pairs/row-sums.js';
import type {
  RowErrors,
  WeighedPairs,
} from '../../../../src/audit/gradients/bounds/pairs/weighed-pairs.js';
import { createAddends } from '../../../../src/audit/bounds/index.js';
import { decodeTensor } from '../../../../src/formats/index.js';
import {
  keptWeights,
  problemShape,
  type Problem,
  type Tensor,
} from '../../../../src/problem/index.js';

/** Numbers of one pair of a query and a key. */
export interface PairNumbers {
  readonly worst: readonly number[];
  readonly variance: readonly number[];
  readonly byOthers: readonly number[];
  readonly value: number;
  readonly unshifted: number;
  readonly sloped: number;
  readonly known: number;
  readonly systematic: number;
  readonly ofWeights: number;
  readonly ofScores: number;
  readonly ofProducts: number;
  readonly ofMeans: number;
}

const onePair = [[{ begin: 0, end: 1 }]] as const;
const places = [0, 1, 2, 3, 4, 5] as const;

/** The largest size of sums of some terms in their order, looked at every 16. */
export function largestOf(terms: readonly number[]): number {
  let [sum, most] = [0, 0];
  for (let i = 0; i < terms.length; i++) {
    // Pairs that nobody sees are holes.
    sum += (terms[i] as number | undefined) ?? 0;
    if (i % 16 === 15 || i === terms.length - 1) most = Math.max(most, Math.abs(sum));
  }
  return most;
}

/** The pairs of a problem one by one, without tiles. */
export function plainPairs(problem: Problem, dout: Tensor, arithmetic: PairArithmetic) {
  const shape = problemShape(problem);
  const { heads, kvHeads, groupSize, queries, keys, qkDim, vDim } = shape;
  const [q, k, v, dO] = [problem.q, problem.k, problem.v, dout].map((one) => decodeTensor(one));
  const addends = createAddends(problem, shape);
  const kept = keptWeights(problem, shape);
  const usesNorms = arithmetic.ds.format !== null;
  const tile = createPairTile(arithmetic, {
    hasPartials: !usesNorms,
    hasAddends: addends !== null,
    hasFactors: kept !== null,
  });
  tile.setRanges(onePair);
  const { known, weighed, errors } = tile;
  const kvHeadOf = (head: number) =>
    Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
  const rowOf = (of: Float64Array, row: number, dim: number) =>
    Array.from(of.subarray(row * dim, (row + 1) * dim));

  /** Products of two rows: their sum, the sum of their sizes or of what norms say, and the mean square of partial sums. */
  const dot = (a: readonly number[], b: readonly number[]) => {
    const terms = a.map((x, c) => x * b[c]);
    const norm = (of: readonly number[]) => Math.sqrt(of.reduce((sum, x) => sum + x * x, 0));
    return {
      sum: terms.reduce((sum, x) => sum + x, 0),
      size: usesNorms ? norm(a) * norm(b) : terms.reduce((sum, x) => sum + Math.abs(x), 0),
      partials: largestOf(terms) ** 2 + terms.reduce((sum, x) => sum + x * x, 0) / 6,
    };
  };
  const read = (head: number, query: number, key: number) => {
    const [row, column] = [head * queries + query, kvHeadOf(head) * keys + key];
    const ofScore = dot(rowOf(q, row, qkDim), rowOf(k, column, qkDim));
    const ofProduct = dot(rowOf(dO, row, vDim), rowOf(v, column, vDim));
    known.dot[0] = ofScore.sum;
    known.dotSize[0] = ofScore.size;
    known.product[0] = ofProduct.sum;
    known.productSize[0] = ofProduct.size;
    known.dotPartials?.fill(ofScore.partials, 0, 1);
    known.productPartials?.fill(ofProduct.partials, 0, 1);
    const first = (of: Float64Array) => of.subarray(0, 64);
    if (known.addend !== null) addends?.addend(head, query, key, first(known.addend));
    if (known.addendSize !== null) addends?.size(head, query, key, first(known.addendSize));
    const isKept = new Uint8Array(64);
    kept?.fill(head, query, key, isKept);
    known.factor?.fill(kept === null ? 1 : isKept[0] / kept.share, 0, 1);
  };
  const found = (): PairNumbers => ({
    worst: places.map((place) => errors[`worst${place}`][0]),
    variance: places.map((place) => errors[`variance${place}`][0]),
    byOthers: otherParts.map((part) => errors[part][0]),
    value: errors.value[0],
    unshifted: errors.unshifted[0],
    sloped: errors.sloped[0],
    known: errors.known[0],
    systematic: errors.systematic[0],
    ofWeights: errors.ofWeights[0],
    ofScores: errors.ofScores[0],
    ofProducts: errors.ofProducts[0],
    ofMeans: errors.ofMeans[0],
  });
  return {
    q,
    k,
    v,
    dO,
    kvHeadOf,
    rowOf,
    weighed,
    /** Weighs a pair. */
    weigh: (head: number, query: number, key: number, row: RowErrors) => {
      read(head, query, key);
      tile.setRows([row]);
      tile.weigh();
    },
    /** The errors of P, and of dT, of the pair that was weighed. */
    errorsOf: (row: RowErrors) => {
      tile.setRows([row]);
      tile.errWeights();
      const ofWeight = found();
      tile.errDerivatives();
      return { ofWeight, ofScore: found() };
    },
  };
}

/** How many rows of a head are equal to each. */
export function equalRows(values: Float64Array, head: number, rows: number, dim: number): number[] {
  const known = counted.get(values) ?? new Map<number, number[]>();
  counted.set(values, known);
  const found = known.get(head) ?? countEqual(values, head, rows, dim);
  known.set(head, found);
  return found;
}

/** What was counted of tensors, by their heads. */
const counted = new WeakMap<Float64Array, Map<number, number[]>>();

function countEqual(values: Float64Array, head: number, rows: number, dim: number): number[] {
  const texts = Array.from({ length: rows }, (_, row) =>
    values.subarray((head * rows + row) * dim, (head * rows + row + 1) * dim).join(),
  );
  return texts.map((text) => texts.filter((other) => other === text).length);
}

const { lseInput, delta, pRecompute, pRound, dpAccumulate, dsRound } = techniquePlaces;

/** How often a technique's variance counts where so many rows have equal scores, and equal products. */
export function timesAlike(place: number, scores: number, products: number): number {
  if (place === lseInput || place === pRecompute || place === pRound) return scores;
  if (place === dpAccumulate) return products;
  return place === dsRound ? Math.min(scores, products) : 1;
}

/** What an element is a sum of. */
export interface PlainSum {
  worst: number;
  magnitude: number;
  systematic: number;
  variance: number;
  known: number;
  readonly byOthers: number[];
  signed: number;
  readonly terms: number[];
  squares: number;
  readonly common: number[];
}

export const plainSum = (): PlainSum => ({
  worst: 0,
  magnitude: 0,
  systematic: 0,
  variance: 0,
  known: 0,
  byOthers: [0, 0, 0],
  signed: 0,
  terms: [],
  squares: 0,
  common: [0, 0, 0, 0],
});

/** Adds a pair times a factor. @param counts how often each technique's variance counts; those that are not in it are the row's */
export function addPair(
  sum: PlainSum,
  pair: PairNumbers,
  x: number,
  counts: ReadonlyMap<number, number>,
  of: {
    readonly index: number;
    readonly systematic: number;
    readonly signed: number;
    readonly beside: number;
  },
): void {
  const size = Math.abs(x);
  let worst = 0;
  for (const [place, count] of counts) {
    worst += pair.worst[place];
    sum.variance += pair.variance[place] * count * x * x;
  }
  sum.worst += worst * size;
  sum.magnitude += (Math.abs(pair.value) + worst + of.beside) * size;
  sum.systematic += of.systematic * size;
  sum.known += pair.known * x;
  pair.byOthers.forEach((y, k) => (sum.byOthers[k] += y * x));
  sum.signed += of.signed * x;
  sum.terms[of.index] = pair.value * x;
  sum.squares += (pair.value * x) ** 2;
  [pair.ofWeights, pair.ofScores, pair.ofProducts, pair.ofMeans].forEach(
    (y, k) => (sum.common[k] += y * x),
  );
}

export const ofQueries = [pRecompute, pRound, dpAccumulate, dsRound] as const;
export const ofKeys = [lseInput, delta, ...ofQueries] as const;
export const ofValues = [lseInput, pRecompute, pRound] as const;

/** Sums of a row without pairs. */
export const emptyRowSums = (): RowSums => ({
  size: 0,
  squares: 0,
  errors: 0,
  typical: 0,
  variance: 0,
  scatter: 0,
  typicalScatter: 0,
  scatterVariance: 0,
  weightErrors: 0,
  typicalWeights: 0,
  commonErrors: 0,
  commonScatter: 0,
  commonWeights: 0,
  product: 0,
  largestProduct: 0,
  weightVariance: 0,
  alikeAdditions: 0,
  squaredAdditions: 0,
});

/**
 * Adds pair `at` of a tile that is weighed.
 * @param alike number of keys of the head that have the same k, and the same v
 */
export function addToRow(
  sums: RowSums,
  pairs: WeighedPairs,
  at: number,
  mean: number,
  alike: { readonly scores: number; readonly products: number },
): void {
  const weight = pairs.weight[at];
  const weightError = pairs.weightError[at];
  const derivative = pairs.derivative[at];
  const derivativeError = pairs.derivativeError[at];
  const typicalWeight = pairs.typicalWeight[at];
  const weightVariance = pairs.weightVariance[at] * alike.scores;
  const size = Math.abs(derivative);
  const distance = Math.abs(derivative - mean);
  sums.size += weight * size;
  sums.squares += (weight * size) ** 2;
  sums.errors += weightError * (size + derivativeError) + weight * derivativeError;
  sums.typical += typicalWeight * size + weight * pairs.typicalDerivative[at];
  sums.variance +=
    weightVariance * size ** 2 + weight ** 2 * pairs.derivativeVariance[at] * alike.products;
  sums.scatter += weightError * distance;
  sums.typicalScatter += typicalWeight * distance;
  sums.scatterVariance += weightVariance * distance ** 2;
  sums.weightErrors += weightError;
  sums.typicalWeights += typicalWeight;
  sums.weightVariance += weightVariance;
  const commonWeight = pairs.commonWeight[at];
  sums.commonErrors += commonWeight * derivative;
  sums.commonScatter += commonWeight * (derivative - mean);
  sums.commonWeights += commonWeight;
  sums.product += weight * derivative;
  sums.largestProduct = Math.max(sums.largestProduct, Math.abs(sums.product));
  if (alike.scores < 16) sums.squaredAdditions += alike.scores;
  else sums.alikeAdditions++;
}
