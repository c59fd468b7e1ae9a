import { headsOf, type ScoreRow, type SelectionProblem } from '../../../../oracles/index.js';
import {
  decodeToFloat64,
  encodeFromFloat64,
  formats,
  type FormatName,
} from '../../../formats/index.js';

/** How sums of products are accumulated: fp32 in any order, tensor cores included, or with 13 fraction bits, as Hopper's fp8 are. */
export const scoreAccumulators = ['fp32', 'e8m13'] as const;
/** One of {@link scoreAccumulators}. */
export type ScoreAccumulator = (typeof scoreAccumulators)[number];

/** The arithmetic that a kernel's scores may have. */
export interface SelectionArithmetic {
  readonly accumulator: ScoreAccumulator;
  /** The format that scores are rounded to before they are compared. */
  readonly scores: FormatName;
  /** The format that means of blocks are rounded to. */
  readonly means: FormatName;
}

/** Scores that a correct kernel may compare, in ascending order of their ends: [low, high] for each candidate. */
export interface ScoreIntervals {
  readonly low: Float64Array;
  readonly high: Float64Array;
}

/** The error of an fp32 operation, rounded or truncated, relative to its result. */
const float32Unit = 2 ** -23;
/** The unit of Hopper's fp8 products, aligned to the largest of 32 and kept with 13 fraction bits. Source: captured results. */
const shortUnit = 2 ** -13;
/** Products of one fp8 instruction. */
const fusedProducts = 32;
/** What may be lost to underflow, by each of fewer operations than there are keys. */
const underflow = 2 ** -100;

/** Half of a unit in the last place of a format, relative to the value. */
function unitOf(format: FormatName): number {
  return 2 ** -formats[format].precision;
}

/** How far from exact a kernel's scores may be before they are rounded, by the parts of a score's magnitude. */
function errorFactors(
  problem: SelectionProblem,
  { accumulator, means }: SelectionArithmetic,
): { readonly sum: number; readonly largest: number; readonly pooled: number } {
  const { law, blockSize } = problem;
  const { dim, queryHeads } = headsOf(problem);
  // Sums of dim products and of the heads, weights, activation, scale: an fp32 operation each.
  const sum = (dim + queryHeads + 4) * float32Unit;
  const ofMeans = law === 'block-mean' ? unitOf(means) : 0;
  if (accumulator === 'fp32')
    return { sum: sum + ofMeans, largest: 0, pooled: (blockSize + 1) * float32Unit };
  const steps = Math.ceil(dim / fusedProducts);
  return {
    sum: sum + ofMeans + steps * shortUnit,
    largest: steps * (fusedProducts + 1) * shortUnit,
    pooled: (blockSize + 1) * float32Unit,
  };
}

/** Makes the intervals of rows; their arrays are the maker's, and the next row overwrites them. Scores that are given are exact. */
export function intervalMaker(
  problem: SelectionProblem,
  arithmetic: SelectionArithmetic,
): (row: ScoreRow) => ScoreIntervals {
  const { candidates } = problem.shape;
  const low = new Float64Array(candidates);
  const high = new Float64Array(candidates);
  const factors = errorFactors(problem, arithmetic);
  const format = formats[arithmetic.scores];
  const rounds = arithmetic.scores !== 'fp64';
  return ({ values, radius, magnitude, largest, pooled }) => {
    if (problem.law === 'given') {
      low.set(values);
      high.set(values);
      return { low, high };
    }
    for (let j = 0; j < candidates; j++) {
      const error =
        radius[j] +
        factors.sum * magnitude[j] +
        factors.largest * largest[j] +
        factors.pooled * pooled[j];
      low[j] = values[j] - error - underflow;
      high[j] = values[j] + error + underflow;
    }
    // Rounding is monotone: the rounded ends are the least and the greatest that a kernel can compare.
    for (const ends of rounds ? [low, high] : [])
      decodeToFloat64(encodeFromFloat64(format, ends), format, ends);
    return { low, high };
  };
}
