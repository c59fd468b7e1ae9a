import { tileRows } from '../../bounds/index.js';
import {
  emptyPairErrors,
  errDerivatives,
  errWeights,
  type PairErrors,
  type WeighedTile,
} from './err-pairs.js';
import {
  addShare,
  placeCount,
  techniquePlaces,
  type TechniqueShares,
} from './gradient-techniques.js';
import type { PairArithmetic } from './pair-arithmetic.js';
import {
  byPart,
  otherParts,
  pairParts,
  type PairMatrices,
  type PairMemory,
  type PairPart,
} from './pair-sums.js';

/**
 * The rows of one side of a tile: Σ|x| and Σ x² of the rows that their pairs are multiplied by, and how many rows of a head are
 * equal.
 */
export interface SideOfTile {
  /** Sums for the factor of dQ or dK, and for that of dV. */
  readonly sizes: Float64Array;
  readonly squares: Float64Array;
  readonly ofValues: { readonly sizes: Float64Array; readonly squares: Float64Array };
  /** Number of rows of the head that have the same q or k, and the same dO or v: their errors are alike. */
  readonly alikeScores: Float64Array;
  readonly alikeProducts: Float64Array;
}

/** The data that the shares of a tile's pairs follow from. */
export interface SharedTile extends WeighedTile {
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

const { lseInput, delta, pRecompute, pRound, dpAccumulate, dsRound } = techniquePlaces;
const ofQueries = [pRecompute, pRound, dpAccumulate, dsRound];
const ofKeys = [lseInput, delta, ...ofQueries];
const ofValues = [lseInput, pRecompute, pRound];

/** Numbers of the pairs of a tile by part, queries first. */
type TileParts = Readonly<Record<PairPart, Float64Array>>;

/** The factors of the errors of pairs in the sums of the other side's rows, and the number of times that their variances count. */
interface OtherSide {
  readonly sizes: Float64Array;
  readonly squares: Float64Array;
  readonly alike: (place: number) => Float64Array;
}

/** Sums the errors of a tile over some techniques, and over keys into the shares of rows of queries. */
function collectQueries(
  tile: WeighedTile,
  errors: PairErrors,
  { worst: worstOfAll, variance: varianceOfAll }: TileParts,
  { sizes, squares, alike }: OtherSide,
  { shares, firstRow }: { readonly shares: TechniqueShares; readonly firstRow: number },
): void {
  for (const place of ofQueries) {
    const worst = errors.worst[place];
    const variance = errors.variance[place];
    const counts = alike(place);
    for (let i = 0; i < tile.rows.length; i++) {
      let ofRow = 0;
      let squaresOfRow = 0;
      for (const { begin, end } of tile.ranges[i])
        for (let j = begin; j < end; j++) {
          const at = i * tileRows + j;
          const error = worst[at];
          const square = variance[at] * counts[j];
          worstOfAll[at] += error;
          varianceOfAll[at] += square;
          ofRow += error * sizes[j];
          squaresOfRow += square * squares[j];
        }
      addShare(shares, firstRow + i, place, ofRow, squaresOfRow);
    }
  }
}

/** The same over queries, into the shares of rows of keys. */
function collectKeys(
  tile: WeighedTile,
  errors: PairErrors,
  { worst: worstOfAll, variance: varianceOfAll }: TileParts,
  { sizes, squares, alike }: OtherSide,
  to: {
    readonly shares: TechniqueShares;
    readonly firstRow: number;
    readonly places: readonly number[];
  },
): void {
  const ofKey = new Float64Array(tileRows);
  const squaresOfKey = new Float64Array(tileRows);
  for (const place of to.places) {
    const worst = errors.worst[place];
    const variance = errors.variance[place];
    const counts = alike(place);
    ofKey.fill(0);
    squaresOfKey.fill(0);
    for (let i = 0; i < tile.rows.length; i++) {
      const count = counts[i];
      const size = sizes[i];
      const square = squares[i];
      for (const { begin, end } of tile.ranges[i])
        for (let j = begin; j < end; j++) {
          const at = i * tileRows + j;
          const error = worst[at];
          const squared = variance[at] * count;
          worstOfAll[at] += error;
          varianceOfAll[at] += squared;
          ofKey[j] += error * size;
          squaresOfKey[j] += squared * square;
        }
    }
    const rows = Math.min(tileRows, to.shares.worst.length / placeCount - to.firstRow);
    for (let j = 0; j < rows; j++)
      addShare(to.shares, to.firstRow + j, place, ofKey[j], squaresOfKey[j]);
  }
}

/** Writes the other parts of a gradient of keys, which counts the row's errors among the pair's. */
function completeKeys(tile: WeighedTile, errors: PairErrors, to: TileParts): void {
  const { value, unshifted, sloped, known, byOthers, systematic } = errors;
  for (let i = 0; i < tile.rows.length; i++) {
    const { typicalWeight, typicalMean } = tile.rows[i];
    for (const { begin, end } of tile.ranges[i])
      for (let at = i * tileRows + begin; at < i * tileRows + end; at++) {
        const size = Math.abs(value[at]);
        // D, which may be infinite, is no part of dV.
        const ofMean = sloped[at] === 0 ? 0 : typicalMean * sloped[at];
        to.magnitude[at] = size + to.worst[at];
        to.systematic[at] = systematic[at] + typicalWeight * size + ofMean;
        to.known[at] = known[at];
        otherParts.forEach((part, k) => (to[part][at] = byOthers[k][at]));
        to.value[at] = value[at];
        to.squares[at] = value[at] * value[at];
        to.ofWeights[at] = errors.ofWeights[at];
        to.ofScores[at] = errors.ofScores[at];
        to.ofProducts[at] = errors.ofProducts[at];
        to.ofMeans[at] = errors.ofMeans[at];
        to.signed[at] = value[at] - unshifted[at];
      }
  }
}

/** The same of dQ, which has the row's errors beside the pairs'. */
function completeQueries(tile: WeighedTile, errors: PairErrors, to: TileParts): void {
  const { value, sloped, known, byOthers, systematic, worst } = errors;
  for (let i = 0; i < tile.rows.length; i++)
    for (const { begin, end } of tile.ranges[i])
      for (let at = i * tileRows + begin; at < i * tileRows + end; at++) {
        to.magnitude[at] =
          Math.abs(value[at]) + to.worst[at] + worst[lseInput][at] + worst[delta][at];
        to.systematic[at] = systematic[at];
        to.known[at] = known[at];
        otherParts.forEach((part, k) => (to[part][at] = byOthers[k][at]));
        to.value[at] = value[at];
        to.squares[at] = value[at] * value[at];
        to.ofScores[at] = errors.ofScores[at];
        to.ofProducts[at] = errors.ofProducts[at];
        to.ofMeans[at] = errors.ofMeans[at];
        to.signed[at] = sloped[at];
      }
}

/** Turns a matrix of 64 × 64 so that columns are rows. */
function turn(from: Float64Array, to: Float64Array): void {
  for (let i = 0; i < tileRows; i++)
    for (let j = 0; j < tileRows; j++) to[i * tileRows + j] = from[j * tileRows + i];
}

const once = new Float64Array(tileRows).fill(1);

/** The number of times that the variances of a technique count: once for each row that errs alike, and so is rounded alike. */
function alikeOf({ alikeScores, alikeProducts }: SideOfTile) {
  const alikeBoth = alikeScores.map((count, i) => Math.min(count, alikeProducts[i]));
  const counts: Readonly<Record<number, Float64Array>> = {
    [lseInput]: alikeScores,
    [pRecompute]: alikeScores,
    [pRound]: alikeScores,
    [dpAccumulate]: alikeProducts,
    [dsRound]: alikeBoth,
  };
  return (place: number) => counts[place] ?? once;
}

/** A function that writes the errors of the pairs of a tile into the matrices of the gradients, and adds up techniques' shares. */
export function createPairSharer(
  arithmetic: PairArithmetic,
  { dq, dk, dv }: PairMemory,
): (tile: SharedTile, targets: ShareTargets) => void {
  const errors = emptyPairErrors();
  const parts = byPart(() => new Float64Array(tileRows * tileRows));
  const ofDq = byPart((part) => dq[part].view);

  return (tile, { queries, firstQuery, group, firstKey }) => {
    const alike = alikeOf(tile.queries);
    /** Adds the errors to rows of keys, whose matrices have keys first. */
    const addKeys = (
      to: PairMatrices,
      shares: TechniqueShares,
      places: readonly number[],
      over: Omit<OtherSide, 'alike'>,
    ) => {
      for (const part of pairParts) parts[part].fill(0);
      collectKeys(tile, errors, parts, { ...over, alike }, { shares, firstRow: firstKey, places });
      completeKeys(tile, errors, parts);
      for (const part of pairParts) turn(parts[part], to[part].view);
    };
    if (group !== null) {
      errors.value.fill(0);
      errWeights(arithmetic, tile, errors);
      addKeys(dv, group.dv, ofValues, tile.queries.ofValues);
    }
    errors.value.fill(0);
    errDerivatives(arithmetic, tile, errors);
    if (group !== null) addKeys(dk, group.dk, ofKeys, tile.queries);
    for (const part of pairParts) ofDq[part].fill(0);
    const over = { ...tile.keys, alike: alikeOf(tile.keys) };
    collectQueries(tile, errors, ofDq, over, { shares: queries, firstRow: firstQuery });
    completeQueries(tile, errors, ofDq);
  };
}
