import { formats } from '../../formats/index.js';
import { type CandidateName, degreeName } from '../functions.js';
import type { ArrayFunction } from '../../simd/index.js';
import {
  exponentLimit,
  type WeightConversion,
  weightConversions,
  type WeightFormat,
} from './weight-formats.js';
import { largestThreshold } from './lag-bound.js';
import { largestOutputThreshold, largestRowSumThreshold, largestSafeValue } from './sum-limits.js';
import { underflowOf } from '../techniques/p-round.js';

/** A request for the limits of rescale thresholds. */
interface LimitRequest {
  readonly thresholds: readonly number[];
  /** Number of keys that a row sees. */
  readonly keys: number;
}

/** The values of FlashAttention-4's max_offset for which limits are given. Source: flash_fwd_sm100.py. */
export const limitOffsets: readonly number[] = [0, 8];

/**
 * The bound on |m·c|, the scores' maxima in log2, that limits are given for: natural scores to 710.
 * Twice the bound adds 2^-14 to the largest x, and an offset as much again.
 */
export const limitScoreExponent = 1024;

/** The bound on |v| for which limits of O are given: the range of fp16, e4m3 and e5m2. */
export const limitLargestValue = 2 ** 16;

/** The functions with which lanes of FlashAttention-4's forward compute P. */
export const limitFunctions: readonly CandidateName[] = ['ex2.approx.ftz.f32', degreeName(3)];

/** The effect of a threshold on the largest weights that it lets through. */
export interface ThresholdOutcome {
  readonly threshold: number;
  /** log2 of the largest weight, without roundings. */
  readonly largestWeight: number;
  /** Whether the format holds every weight. */
  readonly isSafe: boolean;
  /**
   * The share by which the output may shrink: 1 − largest finite/largest weight where weights are
   * clamped and the row sum is not; null where weights become infinite and the output not finite.
   */
  readonly shrinkage: number | null;
  /** Largest magnitude of elements of V with which O cannot overflow. */
  readonly largestValue: number;
}

/** The proven limits of the rescale threshold for weights of a format with an offset. */
export interface ThresholdLimit extends WeightConversion {
  readonly offset: number;
  /** The largest x, over the exp2 functions, for which P is at most the largest finite number. */
  readonly exponent: number;
  /** The largest threshold for which that holds for every input; null for none. */
  readonly weights: number | null;
  /** The same threshold where P may exceed that number by an amount that rounding takes away again: half an ulp. */
  readonly roundedWeights: number | null;
  /** The largest threshold for which l, and O with |v| ≤ 2^16, cannot overflow fp32. */
  readonly rowSum: number | null;
  readonly output: number | null;
  /** The least of `weights`, `rowSum` and `output`. */
  readonly largest: number | null;
  readonly outcomes: readonly ThresholdOutcome[];
}

/** The least of the limits; null where one of them allows nothing. */
function least(limits: readonly (number | null)[]): number | null {
  return limits.includes(null) ? null : Math.min(...(limits as number[]));
}

/** The effect of a format on weights up to 2^(threshold + offset). */
function thresholdOutcome(
  { format, overflow }: WeightConversion,
  offset: number,
  threshold: number,
): Pick<ThresholdOutcome, 'largestWeight' | 'shrinkage'> {
  const largestWeight = threshold + offset;
  const { maxFinite } = formats[format];
  const fits = largestWeight <= Math.log2(maxFinite);
  if (fits) return { largestWeight, shrinkage: 0 };
  return {
    largestWeight,
    shrinkage: overflow === 'clamped' ? 1 - maxFinite * 2 ** -largestWeight : null,
  };
}

/**
 * The proven limits of the threshold for each of the formats with each offset: for all inputs with a
 * positive scale and maxima |m·c| ≤ 1024, without measurement. The theorems are those of lag-bound.ts
 * and sum-limits.ts; the exponents that formats hold come from the models of the instructions.
 * @param functions the exp2 functions by name
 */
export function thresholdLimits(
  weightFormats: readonly WeightFormat[],
  { thresholds, keys }: LimitRequest,
  functions: ReadonlyMap<CandidateName, ArrayFunction>,
): ThresholdLimit[] {
  return weightFormats.flatMap((format) => {
    const found = limitFunctions.map((name) => exponentLimit(format, name, functions.get(name)!));
    const exponent = Math.min(...found.map(({ largestFinite }) => largestFinite));
    const rounded = Math.min(...found.map(({ largestRounded }) => largestRounded));
    return limitOffsets.map((offset): ThresholdLimit => {
      const conditions = { offset, scoreExponent: limitScoreExponent, format, keys };
      const weights = largestThreshold(exponent, conditions);
      const rowSum = largestRowSumThreshold(conditions);
      const output = largestOutputThreshold(conditions, limitLargestValue);
      const largest = least([weights, rowSum, output]);
      return {
        ...weightConversions[format],
        offset,
        exponent,
        weights,
        rowSum,
        output,
        largest,
        roundedWeights: largestThreshold(rounded, conditions),
        outcomes: thresholds.map((threshold) => ({
          threshold,
          ...thresholdOutcome(weightConversions[format], offset, threshold),
          isSafe: weights !== null && threshold <= weights,
          largestValue: largestSafeValue(conditions, threshold),
        })),
      };
    });
  });
}

/**
 * The cost of a threshold at the low end. A threshold needs room above 2^offset, so that a larger one
 * needs a smaller offset; and a row whose maximum does not lag has its largest weight at 2^offset, so
 * that everything below 2^(lost − offset) times it is lost. A lag itself only raises weights.
 */
export interface OffsetTrade {
  readonly format: WeightFormat;
  readonly threshold: number;
  /** The largest whole offset with which the format holds every weight. */
  readonly offset: number;
  /** log2 of the weights up to which weights become 0, relative to a largest weight that does not lag. */
  readonly lostUpTo: number;
  /** The same for weights that become subnormal or 0. */
  readonly subnormalUpTo: number;
  /** The range in log2 between the smallest weight that is not lost and the largest finite one. */
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
