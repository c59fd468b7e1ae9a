import type { KeyRange } from '../../../problem/index.js';
import { tileRows } from '../../bounds/index.js';
import {
  pairPlaces,
  placeCount,
  techniquePlaces,
  type TechniqueShares,
} from './gradient-techniques.js';
import { meanRounding, type PairArithmetic } from './pair-arithmetic.js';
import type { PairMatrices, PairMemory } from './pair-sums.js';
import { roundOperand, type Rounded } from './round-operand.js';
import type { KnownPairs, RowErrors, WeighedPairs } from './weigh-pairs.js';

/** The rows of one side of a tile: Σ|x| and Σ x² of what their pairs are multiplied by, and how many rows of a head are equal. */
export interface SideOfTile {
  /** Of the factor of dQ or dK, and of that of dV. */
  readonly sizes: Float64Array;
  readonly squares: Float64Array;
  readonly ofValues: { readonly sizes: Float64Array; readonly squares: Float64Array };
  /** How many rows of the head have the same q or k, and the same dO or v: their errors are alike. */
  readonly alikeScores: Float64Array;
  readonly alikeProducts: Float64Array;
}

/** What the pairs of a tile are worked out from. */
export interface SharedTile {
  readonly known: KnownPairs;
  readonly weighed: WeighedPairs;
  readonly rows: readonly RowErrors[];
  /** The keys that each row sees, within the tile. */
  readonly ranges: readonly (readonly KeyRange[])[];
  readonly queries: SideOfTile;
  readonly keys: SideOfTile;
}

/** The shares of techniques in rows of dQ, from `firstQuery` on, and of dK and dV, from `firstKey` on; null where they are not asked for. */
export interface ShareTargets {
  readonly queries: TechniqueShares;
  readonly firstQuery: number;
  readonly group: { readonly dk: TechniqueShares; readonly dv: TechniqueShares } | null;
  readonly firstKey: number;
}

/** Errors of one pair, by technique. */
interface PairShares {
  readonly worst: Float64Array;
  readonly variance: Float64Array;
  readonly rounded: Rounded;
}

const { lseInput, delta, pRecompute, pRound, dpAccumulate, dsRound } = techniquePlaces;

/** Adds a pair's errors to a row's, all of them times the other factor's. */
function addPair(
  to: TechniqueShares,
  row: number,
  { worst, variance }: PairShares,
  size: number,
  square: number,
): void {
  const from = row * placeCount;
  for (let place = 0; place < pairPlaces; place++) {
    to.worst[from + place] += worst[place] * size;
    to.variance[from + place] += variance[place] * square;
  }
}

function sumOf(shares: Float64Array): number {
  return shares[0] + shares[1] + shares[2] + shares[3] + shares[4] + shares[5];
}

/** A function that writes the errors of the pairs of a tile into the matrices of the gradients, and adds up techniques' shares. */
export function createPairSharer(
  arithmetic: PairArithmetic,
  { dq, dk, dv, derivatives, weights }: PairMemory,
): (tile: SharedTile, targets: ShareTargets) => void {
  const { elementwise, elementwiseVariance, underflow, products, dropout } = arithmetic;
  const shares: PairShares = {
    worst: new Float64Array(pairPlaces),
    variance: new Float64Array(pairPlaces),
    rounded: { worst: 0, known: 0, variance: 0 },
  };
  const { worst, variance, rounded } = shares;

  function write(to: PairMatrices, at: number, numbers: PairNumbers): void {
    to.worst.view[at] = sumOf(worst);
    to.variance.view[at] = sumOf(variance);
    to.magnitude.view[at] = numbers.magnitude;
    to.systematic.view[at] = numbers.systematic;
    to.known.view[at] = rounded.known;
    to.signed.view[at] = numbers.signed;
  }
  const numbers: PairNumbers = { magnitude: 0, systematic: 0, signed: 0 };

  /** dV: `lse-input`, `p-recompute`, `p-round`. */
  function shareWeight(tile: SharedTile, targets: ShareTargets, i: number, j: number): void {
    const { weighed, known, queries } = tile;
    const row = tile.rows[i];
    const at = i * tileRows + j;
    const to = j * tileRows + i;
    const weight = weighed.weight[at];
    const factor = known.factor === null ? 1 : known.factor[at];
    const kept = factor * (1 + dropout);
    const ofRow = row.weight * weight;
    const alone = weighed.weightError[at] * (1 + row.weight);
    const ofFactor = dropout * weight * factor;
    roundOperand(arithmetic.p, weight, alone + ofRow, rounded);
    worst.fill(0);
    variance.fill(0);
    worst[lseInput] = ofRow * kept;
    worst[pRecompute] = alone * kept + ofFactor;
    worst[pRound] = rounded.worst * kept;
    const square = factor * factor;
    variance[pRecompute] = weighed.weightVariance[at] * square * queries.alikeScores[i];
    variance[pRound] = rounded.variance * square;
    rounded.known *= factor;
    numbers.magnitude = weight * factor + sumOf(worst);
    numbers.systematic =
      (weighed.typicalWeight[at] + row.typicalWeight * weight) * factor + ofFactor;
    numbers.signed = (weight * factor * row.weightShift) / (1 + row.weightShift);
    weights.view[to] = weight * factor;
    write(dv, to, numbers);
    if (targets.group !== null)
      addPair(
        targets.group.dv,
        targets.firstKey + j,
        shares,
        queries.ofValues.sizes[i],
        queries.ofValues.squares[i],
      );
  }

  /** dQ and dK: everything about dS. Theorem 7. */
  function shareDerivative(tile: SharedTile, targets: ShareTargets, i: number, j: number): void {
    const { weighed, queries, keys } = tile;
    const row = tile.rows[i];
    const at = i * tileRows + j;
    const to = j * tileRows + i;
    const weight = weighed.weight[at];
    const slope = weighed.slope[at];
    const slopeError = weighed.slopeError[at];
    const ofWeight = weighed.weightError[at];
    const exact = weighed.derivative[at] - row.mean;
    const shifted = exact - row.meanShift;
    const size = Math.abs(shifted);
    const ofMean = elementwise * (size + Math.abs(row.mean));
    // A sum of dP may begin with −D, and every addition to it rounds.
    const ofDerivative =
      weighed.derivativeError[at] + products.worst * Math.abs(row.mean + row.meanShift);
    // Where dS is made of P that is written: of the same number.
    roundOperand(
      arithmetic.weights,
      weight,
      ofWeight * (1 + row.weight) + row.weight * weight,
      rounded,
    );
    const ofRounding = rounded.worst;
    const most = weight + ofWeight + ofRounding;
    const reach = size + ofDerivative + ofMean + row.worstMean;
    const sloped = weight * slope;
    const dT = sloped * shifted;
    const dTSize = Math.abs(dT);
    const steepest = (slope + slopeError) * (1 + row.weight);
    worst[lseInput] = row.weight * dTSize;
    worst[delta] = row.worstMean * sloped * (1 + row.weight);
    worst[pRecompute] = steepest * ofWeight * reach + (1 + row.weight) * slopeError * most * reach;
    worst[pRound] = steepest * ofRounding * reach;
    worst[dpAccumulate] = steepest * weight * ofDerivative;
    worst[dsRound] =
      steepest * (weight * ofMean + 3 * elementwise * most * reach) +
      (1 + row.weight) * 3 * underflow * (1 + reach);
    roundOperand(arithmetic.ds, dT, sumOf(worst), rounded);
    worst[dsRound] += rounded.worst;
    const size2 = size * size;
    const steep2 = sloped * sloped;
    const ofSlopes = weighed.slopeVariance[at] * weight * weight * size2;
    const recomputed = slope * slope * weighed.weightVariance[at] * size2 + ofSlopes;
    const derived = steep2 * weighed.derivativeVariance[at];
    const { weightRounding } = arithmetic;
    const dT2 = dT * dT;
    variance[pRound] = meanRounding * weightRounding * weightRounding * dT2;
    variance[dsRound] =
      rounded.variance + elementwiseVariance * (steep2 * (size2 + row.mean * row.mean) + 2 * dT2);
    const typical =
      slope * weighed.typicalWeight[at] * size +
      sloped * weighed.typicalDerivative[at] +
      weighed.typicalSlope[at] * weight * size +
      3 * underflow;
    derivatives.view[to] = dT;
    numbers.magnitude = dTSize + sumOf(worst);
    // Of keys the errors of a row are errors of pairs.
    variance[delta] = row.meanVariance * steep2;
    variance[pRecompute] = recomputed * queries.alikeScores[i];
    variance[dpAccumulate] = derived * queries.alikeProducts[i];
    numbers.systematic = typical + row.typicalWeight * dTSize + row.typicalMean * sloped;
    numbers.signed = dT - (weight / (1 + row.weightShift)) * slope * exact;
    write(dk, to, numbers);
    if (targets.group !== null)
      addPair(targets.group.dk, targets.firstKey + j, shares, queries.sizes[i], queries.squares[i]);
    worst[lseInput] = 0;
    worst[delta] = 0;
    variance[delta] = 0;
    variance[pRecompute] = recomputed * keys.alikeScores[j];
    variance[dpAccumulate] = derived * keys.alikeProducts[j];
    numbers.systematic = typical;
    numbers.signed = sloped;
    write(dq, at, numbers);
    addPair(targets.queries, targets.firstQuery + i, shares, keys.sizes[j], keys.squares[j]);
  }

  return (tile, targets) => {
    for (let i = 0; i < tile.rows.length; i++)
      for (const { begin, end } of tile.ranges[i])
        for (let j = begin; j < end; j++) {
          shareWeight(tile, targets, i, j);
          shareDerivative(tile, targets, i, j);
        }
  };
}

/** Numbers of a pair beside those of techniques. */
interface PairNumbers {
  /** Of a term of the sum, errors and all. */
  magnitude: number;
  systematic: number;
  /** P·slope for dQ, and what the stored forward moves for dK and dV. */
  signed: number;
}
