import type { ScoreLaw } from '../../src/problem/index.js';
import { operandRow } from './operand.js';
import type { Row, RowResult } from './row.js';
import type { ScoreConstants } from './scores.js';

/** Unit roundoff of fp64. */
const u = 2 ** -53;

/** A row with only those of its keys whose weights can matter. */
interface WeightyRow {
  readonly row: Row;
  /** Keys left out. */
  readonly dropped: number;
  /** No dropped key's weight is above 2^-octaves of the row's largest. */
  readonly octaves: number;
}

/** The exponents of a row's keys, each known to lie in an interval. */
interface ExponentIntervals {
  /** Per visible key, an upper end of its exponent score · log2 e; NaN where nothing is known. */
  readonly upper: Float64Array;
  /** A lower end of the largest exponent; NaN where nothing is known. */
  readonly largest: number;
}

/** An upper bound on log2 e, and a factor that covers the roundings of the bounds themselves. */
const log2eUp = 1.4427;
const slack = 1 + 2 ** -20;

/** The dot product of a row of keys with the query in fp64. */
function plainDot(query: Float64Array, key: Float64Array): number {
  // Four sums at once, since one would wait for each of its additions.
  let score = 0;
  let second = 0;
  let third = 0;
  let fourth = 0;
  let t = 0;
  for (; t + 4 <= query.length; t += 4) {
    score += query[t] * key[t];
    second += query[t + 1] * key[t + 1];
    third += query[t + 2] * key[t + 2];
    fourth += query[t + 3] * key[t + 3];
  }
  for (; t < query.length; t++) score += query[t] * key[t];
  return score + (second + third + fourth);
}

/**
 * The interval of each key's exponent: the score in fp64, with the bound γ(d)·‖q‖·‖k‖ on a dot product's
 * error (Higham, Theorem 3.1: the order of the sum does not matter) and 16 roundings more, of which the
 * constant and its product take two, the ends of the interval one each, and the comparison of two such ends
 * two; an addend has those of its own product and of the sum, and its rest, too. With a softcap the score is
 * anywhere within the cap, which is of use only with addends: null without.
 */
export function exponentIntervals(
  row: Row,
  law: ScoreLaw,
  constants: ScoreConstants,
): ExponentIntervals | null {
  const { query, queryNorm, keys, visible, addends } = row;
  if (law.softcap !== null && addends === null) return null;
  const factor = constants.factorHigh;
  const share = (keys.dim + 16) * u * slack * Math.abs(factor) * queryNorm;
  const underflow = (keys.dim + 1) * 2 ** -1073 * (Math.abs(factor) + 1);
  const addendShare = 16 * u * slack * log2eUp;
  const cap = (law.softcap ?? 0) * log2eUp * slack;
  const upper = new Float64Array(visible.length);
  let largest = -Infinity;
  for (let j = 0; j < visible.length; j++) {
    let exponent = 0;
    let error = cap;
    if (law.softcap === null) {
      exponent = plainDot(query, operandRow(keys, visible[j])) * factor;
      error = share * keys.norm[visible[j]] + underflow;
    }
    if (addends !== null) {
      exponent += addends[j] * Math.LOG2E;
      error += addendShare * Math.abs(addends[j]) + 16 * u * error;
    }
    upper[j] = exponent + error;
    largest = Math.max(largest, exponent - error);
  }
  return { upper, largest };
}

/**
 * A row without the keys whose weights are provably at most 2^-octaves of the largest: those whose
 * interval ends `octaves` and one octave below the largest's. Keys whose intervals overlap the
 * largest's, ties above all, stay. Where the intervals are of no use, all keys stay.
 */
export function weightyRow(
  row: Row,
  intervals: ExponentIntervals | null,
  octaves: number,
): WeightyRow {
  if (intervals === null) return { row, dropped: 0, octaves };
  const { upper, largest } = intervals;
  const cutoff = largest - octaves - 1;
  // A comparison with NaN is false, so that what is not known is kept.
  const weighty: number[] = [];
  for (let j = 0; j < upper.length; j++) if (!(upper[j] < cutoff)) weighty.push(j);
  const dropped = upper.length - weighty.length;
  if (dropped === 0) return { row, dropped, octaves };
  const { visible, infinite, addends, addendRests, kept } = row;
  const picked = (numbers: Float64Array | null) =>
    numbers === null ? null : Float64Array.from(weighty, (j) => numbers[j]);
  return {
    row: {
      ...row,
      visible: Int32Array.from(weighty, (j) => visible[j]),
      infinite: Int8Array.from(weighty, (j) => infinite[j]),
      addends: picked(addends),
      addendRests: picked(addendRests),
      kept: kept === null ? null : Uint8Array.from(weighty, (j) => kept[j]),
    },
    dropped,
    octaves,
  };
}

/**
 * The result of a row's weighty keys as one of the whole row. The dropped keys' weights come to at most δ
 * = dropped · 2^-octaves of the sum of the others, so they move O and Σ p|v| / Σ p by at most 2δ·max|v|,
 * over dropout's divisor, and the LSE by at most δ. `columnLargest` bounds |v| by column.
 */
export function withDroppedKeys(
  result: RowResult,
  { row, dropped, octaves }: WeightyRow,
  columnLargest: Float64Array,
): RowResult {
  if (dropped === 0) return result;
  const share = dropped * 2 ** -octaves;
  return {
    ...result,
    // The smallest subnormal where the product underflows, and 2^-50 for the sum's own rounding.
    outRadius: result.outRadius.map((radius, c) =>
      columnLargest[c] === 0
        ? radius
        : (radius + (2 * share * columnLargest[c]) / row.share) * (1 + 2 ** -50) + Number.MIN_VALUE,
    ),
    // An LSE beyond fp64 is an infinity, which has no radius.
    lseRadius: Number.isFinite(result.lse)
      ? (result.lseRadius + share) * (1 + 2 ** -50)
      : result.lseRadius,
  };
}
