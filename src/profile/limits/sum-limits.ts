import { formats, nextDown, unitRoundoff } from '../../formats/index.js';
import { largestExponent, largestThreshold, type LagConditions } from './lag-bound.js';
import type { WeightFormat } from './weight-formats.js';

/** Conditions that bound a row's sum l and its output O, both fp32. */
interface SumConditions extends Omit<LagConditions, 'threshold'> {
  readonly format: WeightFormat;
  /** Number of keys that a row sees. */
  readonly keys: number;
}

const u = unitRoundoff(formats.fp32);

/**
 * An exp2 of x is at most 2^x times 1 plus this. The polynomial of degree 3 errs by 8.77e-5 at most,
 * the special function unit by less than 2^-21 (`flashproof profile exp2`, all inputs).
 */
const exp2Excess = 2 ** -13;

/** Number of roundings of a summand of l in a block of 128 keys: 16 sums, a tree of 3, and α. */
const roundingsPerBlock = 20;
const blockKeys = 128;

/** log2 of 2^128·(1 − 2^-25), below which a number rounds to a finite fp32 number. */
const overflowExponent = 128 + Math.log2(1 - 2 ** -25);

/**
 * The largest x for which l stays finite. Every weight is at most 2^x·(1 + e) at all times, since a
 * rescale multiplies sums of older weights by α ≤ 1 exactly as it lowers their exponents, and a sum of
 * N of them that goes through r roundings is at most N·2^x·(1 + e)·(1 + u)^r.
 */
function rowSumExponent(keys: number): number {
  const roundings = roundingsPerBlock * Math.ceil(keys / blockKeys);
  return (
    overflowExponent - Math.log2(keys) - Math.log2(1 + exp2Excess) - roundings * Math.log2(1 + u)
  );
}

/**
 * The largest x for which O with |v| ≤ V stays finite: |O| ≤ Σ P|v| at all times, where P is rounded up
 * by half an ulp at most; the tensor cores' sums truncate and α·O is rounded once a block.
 */
function outputExponent(keys: number, format: WeightFormat, largestValue: number): number {
  const rounding = Math.log2(1 + unitRoundoff(formats[format]));
  return rowSumExponent(keys) - rounding - Math.log2(largestValue);
}

/** The largest fp32 number that is at most x. */
function floorFloat32(x: number): number {
  const rounded = Math.fround(x);
  return rounded <= x ? rounded : nextDown(formats.fp32, rounded);
}

/**
 * The largest threshold with which no row sum of `keys` keys overflows fp32, for any input; null
 * where one may overflow even if the maximum never lags. A scale above 0 is assumed.
 */
export function largestRowSumThreshold({ keys, ...conditions }: SumConditions): number | null {
  return largestThreshold(floorFloat32(rowSumExponent(keys)), conditions);
}

/** The same threshold for O where no element of V exceeds `largestValue` in magnitude. */
export function largestOutputThreshold(
  { keys, format, ...conditions }: SumConditions,
  largestValue: number,
): number | null {
  return largestThreshold(floorFloat32(outputExponent(keys, format, largestValue)), conditions);
}

/** The largest |v| of the elements of V for which O cannot overflow with the threshold. */
export function largestSafeValue(
  { keys, format, ...conditions }: SumConditions,
  threshold: number,
): number {
  return 2 ** (outputExponent(keys, format, 1) - largestExponent({ ...conditions, threshold }));
}
