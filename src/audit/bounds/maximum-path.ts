import type { MaximumRule } from './kernel-arithmetic.js';
import { roundoff32 } from './sum-error.js';

/** What the maxima in use are while one block of keys is worked on, a number for each row. */
export interface BlockPath {
  /** The maximum in use lies within, as an exponent (log2); both −∞ before a row's first key. */
  readonly low: Float64Array;
  readonly high: Float64Array;
  /** By how much it may have grown on this block (log2), so that older sums are rescaled; else 0. */
  readonly growth: Float64Array;
}

/** A comparison of fp32 numbers a and b ≥ 0 may go the other way when they are this close. */
const comparisonError = 4 * roundoff32;

/**
 * Follows the maximum in use of up to 64 rows from block to block, in the order in which the kernel
 * meets them. `maxima` holds each block's largest exponent per row, off by at most `uncertainty`. Where
 * that leaves open whether a rescale is skipped, both outcomes are within low and high.
 */
export function followMaximum(
  rule: MaximumRule & { readonly kind: 'online' },
  maxima: readonly Float64Array[],
  uncertainty: Float64Array,
): BlockPath[] {
  const rows = uncertainty.length;
  const nowLow = new Float64Array(rows).fill(-Infinity);
  const nowHigh = new Float64Array(rows).fill(-Infinity);
  return maxima.map((block) => {
    const growth = new Float64Array(rows);
    for (let i = 0; i < rows; i++) {
      const low = block[i] - uncertainty[i];
      const high = block[i] + uncertainty[i];
      if (low === -Infinity) continue;
      if (nowLow[i] === -Infinity) {
        nowLow[i] = low;
        nowHigh[i] = high;
        continue;
      }
      const most = Math.max(0, high - nowLow[i]);
      const least = Math.max(0, low - nowHigh[i]);
      if (rule.threshold > 0 && most <= rule.threshold * (1 - comparisonError)) continue;
      if (most === 0) continue;
      growth[i] = most;
      nowHigh[i] = Math.max(nowHigh[i], high);
      const grows = rule.threshold === 0 || least > rule.threshold * (1 + comparisonError);
      if (grows) nowLow[i] = Math.max(nowLow[i], low);
    }
    return { low: nowLow.slice(), high: nowHigh.slice(), growth };
  });
}
