import type { ScoreLaw } from '../../src/problem/index.js';
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

/**
 * Where the exponent of each key lies: the score in fp64, with the bound γ(d)·‖q‖·‖k‖ on
 * a dot product's error (Higham, Theorem 3.1: the order of the sum does not matter) and 16 roundings
 * more, of which the constant and its product take two, the ends of the interval one each, and the
 * comparison of two such ends two. Null with a softcap: capped scores are no further apart than twice
 * the cap.
 */
export function exponentIntervals(
  row: Row,
  law: ScoreLaw,
  constants: ScoreConstants,
): ExponentIntervals | null {
  if (law.softcap !== null) return null;
  const { query, queryNorm, keys, keyNorms, qkDim, visible } = row;
  const factor = constants.factorHigh;
  const share = (qkDim + 16) * u * (1 + 2 ** -20) * Math.abs(factor) * queryNorm;
  const underflow = (qkDim + 1) * 2 ** -1073 * (Math.abs(factor) + 1);
  const upper = new Float64Array(visible.length);
  let largest = -Infinity;
  for (let j = 0; j < visible.length; j++) {
    // Four sums at once, since one would wait for each of its additions.
    let score = 0;
    let second = 0;
    let third = 0;
    let fourth = 0;
    const start = visible[j] * qkDim;
    let t = 0;
    for (; t + 4 <= qkDim; t += 4) {
      score += query[t] * keys[start + t];
      second += query[t + 1] * keys[start + t + 1];
      third += query[t + 2] * keys[start + t + 2];
      fourth += query[t + 3] * keys[start + t + 3];
    }
    for (; t < qkDim; t++) score += query[t] * keys[start + t];
    score += second + third + fourth;
    const exponent = score * factor;
    const error = share * keyNorms[visible[j]] + underflow;
    upper[j] = exponent + error;
    largest = Math.max(largest, exponent - error);
  }
  return { upper, largest };
}

/**
 * A row without the keys whose weights are provably at most 2^-octaves of the largest: those whose
 * interval ends `octaves` and one octave below the largest's. Keys whose intervals overlap the
 * largest's, ties above all, stay. Where the intervals say nothing, all keys stay.
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
  const kept: number[] = [];
  for (let j = 0; j < upper.length; j++) if (!(upper[j] < cutoff)) kept.push(j);
  const dropped = upper.length - kept.length;
  if (dropped === 0) return { row, dropped, octaves };
  return {
    row: {
      ...row,
      visible: Int32Array.from(kept, (j) => row.visible[j]),
      infinite: Int8Array.from(kept, (j) => row.infinite[j]),
    },
    dropped,
    octaves,
  };
}

/**
 * The result of a row's weighty keys as one of the whole row. The dropped keys' weights come to at
 * most δ = dropped · 2^-octaves of the sum of the others, so they move O and Σ p|v| / Σ p by at most
 * 2δ·max|v| and the LSE by at most δ. `columnLargest` bounds |v| by column.
 */
export function withDroppedKeys(
  result: RowResult,
  { dropped, octaves }: WeightyRow,
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
        : (radius + 2 * share * columnLargest[c]) * (1 + 2 ** -50) + Number.MIN_VALUE,
    ),
    // An LSE beyond fp64 is an infinity, which has no radius.
    lseRadius: Number.isFinite(result.lse)
      ? (result.lseRadius + share) * (1 + 2 ** -50)
      : result.lseRadius,
  };
}
