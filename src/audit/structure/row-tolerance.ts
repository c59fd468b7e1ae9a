import { largestShiftedRounding, outputPlaces } from './common-offset.js';
import type { PooledErrors } from './error-pool.js';

/** Number of units that weights may be relative to before they are rounded: the largest, the sum, or e^0. */
export const weightFamilies = 3;

/** Parts of an octave within which a smooth exponential's error is one number. */
export const smoothPlaces = 32;

/** The projections of one row's error, and of its possible causes, on every instrument's direction. */
export interface RowProjections {
  /** Σ r·X and Σ Y·X. */
  readonly signed: Float64Array;
  readonly norm: Float64Array;
  /** Σ c·e of P's rounding per instrument, of amplitude `rounding`; Σ w in the last channel. */
  readonly weights: PooledErrors;
  /** The effect of the outputs' rounding and of the sums over keys. */
  readonly outputs: PooledErrors;
  /** Σ c by place in an ulp, of the outputs' rounding: per instrument. */
  readonly places: Float64Array;
  /** Worst cases: Σ half ulp·|X|, and the systematic part. */
  readonly outputWorst: Float64Array;
  readonly systematic: Float64Array;
  /** The part of that which follows from scores written in a short format. */
  readonly written: Float64Array;
  /** √3 standard deviations of all else: weights' random errors, and the error that the whole row shares. */
  readonly common: Float64Array;
  /** √3 standard deviations of the sums over keys, if they err alike in all columns. */
  readonly accumulated: Float64Array;
  /** Σ w·X·(v − O) by coarse place in an octave, relative to the largest weight, per instrument. */
  readonly smooth: Float64Array;
  /** Σ w by coarse place, per family. */
  readonly mass: Float64Array;
  /** Σ (w·X·v)² by coarse place relative to the largest weight, per instrument. */
  readonly squares: Float64Array;
  /** |Σ| of P's roundings where they follow from the problem: with the division last or first, whichever is more. */
  readonly known: Float64Array;
  /** log2 of each family's factor of the weights, beyond the first. */
  readonly shifts: readonly number[];
  /** Largest relative error of P's rounding. */
  readonly rounding: number;
}

/** Sums that variances are computed from, for one row or for rows that err alike. */
type ErrorSums = Pick<RowProjections, 'weights' | 'outputs' | 'common' | 'smooth'>;

/** Variances of each instrument's projection by their cause. */
export interface Variances {
  readonly weights: Float64Array;
  readonly outputs: Float64Array;
  readonly others: Float64Array;
}

/**
 * The mean square of half an ulp relative to a number, as a part of its largest, over numbers of these squared
 * weights by coarse place in an octave: for the offset that makes it most. 1 where there are none.
 */
export function shareOfLargest(squares: Float64Array, set: number): number {
  const first = set * smoothPlaces;
  let all = 0;
  for (let place = 0; place < smoothPlaces; place++) all += squares[first + place];
  if (!(all > 0)) return 1;
  let largest = 0;
  for (let shift = 0; shift < smoothPlaces; shift++) {
    let sum = 0;
    for (let place = 0; place < smoothPlaces; place++)
      sum += squares[first + place] * squaredHalfUlp[place + shift];
    largest = Math.max(largest, sum);
  }
  return largest / all;
}

/** Half an ulp relative to a number at the lower end of each coarse place of two octaves, squared, as a part of its largest. */
const squaredHalfUlp = Float64Array.from(
  { length: 2 * smoothPlaces },
  (_, i) => 4 ** (-(i % smoothPlaces) / smoothPlaces),
);

/** The same of one row's weights. */
export function rowShareOfLargest({ squares }: RowProjections, d: number): number {
  return shareOfLargest(squares, d);
}

/** Σ of squares of one set of coarse places. */
export function squaresAt(smooth: Float64Array, set: number): number {
  let sum = 0;
  for (let at = set * smoothPlaces; at < (set + 1) * smoothPlaces; at++) sum += smooth[at] ** 2;
  return sum;
}

/** The variances of each instrument's projection from one row, or from rows that err alike. */
export function variancesOf(
  { weights, outputs, common, smooth }: ErrorSums,
  rounding: number,
  exponential: number,
): Variances {
  const count = common.length;
  const numbers = () => new Float64Array(count);
  const variances = { weights: numbers(), outputs: numbers(), others: numbers() };
  for (let d = 0; d < count; d++) {
    variances.weights[d] = (rounding ** 2 * weights.squared(d)) / 3;
    variances.outputs[d] = outputs.squared(d) / 3;
    variances.others[d] = (common[d] ** 2 + exponential ** 2 * squaresAt(smooth, d)) / 3;
  }
  return variances;
}

/** The remaining standard deviation of P's roundings in one row where those that are alike are at their worst. */
export function restOf({ weights, rounding }: RowProjections, d: number): number {
  return rounding * Math.sqrt(weights.independent(d) / 3);
}

/** The variances of each instrument's projection from one row. */
export function rowVariances(row: RowProjections, exponential: number): Variances {
  return variancesOf(row, row.rounding, exponential);
}

/** The largest sum of roundings of outputs that are all moved by one part of their ulp. */
export function shiftedRounding(byPlace: Float64Array, d: number): number {
  return largestShiftedRounding(byPlace.subarray(d * outputPlaces, (d + 1) * outputPlaces));
}

/** The terms that a row's statistic is judged by. */
interface RowAllowance {
  readonly variances: Variances;
  readonly deviations: number;
  /** Largest relative error of the exponential, the worst that is smooth. */
  readonly exponential: number;
}

/**
 * The bound that |Σ r·X| of one row exceeds with probability at most 2·exp(−deviations²/2), on instrument
 * `d`.
 */
export function rowTolerance(row: RowProjections, d: number, allowance: RowAllowance): number {
  return rowToleranceOf(row, d, allowance, shiftedRounding(row.places, d));
}

/** The same where no two outputs have anything in common: never more, and found at once. */
export function leastRowTolerance(row: RowProjections, d: number, allowance: RowAllowance): number {
  return rowToleranceOf(row, d, allowance, 0);
}

function rowToleranceOf(
  row: RowProjections,
  d: number,
  { variances, deviations, exponential }: RowAllowance,
  ofOutputs: number,
): number {
  let smooth = 0;
  for (let at = d * smoothPlaces; at < (d + 1) * smoothPlaces; at++)
    smooth += Math.abs(row.smooth[at]);
  return (
    row.systematic[d] +
    exponential * smooth +
    leastTolerance(
      deviations,
      [
        { known: row.known[d], variance: variances.weights[d] },
        {
          known: row.rounding * row.weights.coherent(d),
          variance: restOf(row, d) ** 2,
        },
        { known: row.rounding * row.weights.absolute(d), variance: 0 },
      ],
      [
        { known: ofOutputs, variance: variances.outputs[d] },
        { known: row.outputWorst[d], variance: row.accumulated[d] ** 2 / 3 },
      ],
      variances.others[d],
    )
  );
}

/** One way to bound a kind of rounding: its largest known effect, and the variance of the rest. */
interface RoundingBound {
  readonly known: number;
  readonly variance: number;
}

/**
 * The least bound over the ways to bound each kind of rounding: by its probable size, by the worst case of those that round
 * alike and the rest at random, or by its worst case.
 */
export function leastTolerance(
  deviations: number,
  weights: readonly RoundingBound[],
  outputs: readonly RoundingBound[],
  others: number,
): number {
  let least = Infinity;
  for (const ofWeights of weights)
    for (const ofOutputs of outputs) {
      const variance = others + ofWeights.variance + ofOutputs.variance;
      least = Math.min(least, ofWeights.known + ofOutputs.known + deviations * Math.sqrt(variance));
    }
  return least;
}
