import { underflowOf } from '../techniques/p-round.js';
import { largestThreshold } from './lag-bound.js';
import type { ThresholdLimit } from './threshold-limits.js';
import { limitScoreExponent } from './threshold-limits.js';
import type { WeightFormat } from './weight-formats.js';

/**
 * What a threshold costs at the low end. A threshold needs room above 2^offset, so that a larger one
 * needs a smaller offset; and a row whose maximum does not lag has its largest weight at 2^offset, so
 * that all below 2^(lost − offset) of it is lost. A lag itself only raises weights.
 */
export interface OffsetTrade {
  readonly format: WeightFormat;
  readonly threshold: number;
  /** The largest whole offset with which the format holds every weight. */
  readonly offset: number;
  /** Relative to a largest weight that does not lag, log2: weights up to here become 0. */
  readonly lostUpTo: number;
  /** The same: weights up to here become subnormal or 0. */
  readonly subnormalUpTo: number;
  /** Weights in log2 between the smallest that is not lost and the largest finite. */
  readonly range: number;
}

/** The trade of thresholds against offsets for a format whose limit is known; infinite ones have none. */
export function offsetTrades(
  { format, exponent }: Pick<ThresholdLimit, 'format' | 'exponent'>,
  thresholds: readonly number[],
): OffsetTrade[] {
  return thresholds.filter(Number.isFinite).map((threshold): OffsetTrade => {
    const allows = (offset: number): boolean => {
      const conditions = { offset, scoreExponent: limitScoreExponent };
      return (largestThreshold(exponent, conditions) ?? -1) >= threshold;
    };
    let offset = Math.floor(exponent - threshold) + 1;
    while (!allows(offset)) offset--;
    const { lostUpToX, subnormalUpToX, lostUpTo } = underflowOf({ format, offset });
    return {
      format,
      threshold,
      offset,
      lostUpTo: lostUpToX,
      subnormalUpTo: subnormalUpToX,
      range: exponent - Math.log2(lostUpTo),
    };
  });
}
