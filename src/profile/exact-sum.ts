import { float64FromRational, scaledIntegerOf } from '../arith/index.js';

/** A sum of fp64 numbers without rounding, in units of 2^-1074: adding is associative. */
export type ExactSum = bigint;

const unitExponent = 1074n;

/** A finite fp64 number as an exact sum. */
export function exactSumOf(value: number): ExactSum {
  if (value === 0) return 0n;
  const { integer, exponent } = scaledIntegerOf(value);
  return integer << (BigInt(exponent) + unitExponent);
}

/** The sum divided by a whole number above 0, rounded to fp64 once. */
export function quotient(sum: ExactSum, divisor: bigint): number {
  return float64FromRational(sum, divisor << unitExponent);
}
