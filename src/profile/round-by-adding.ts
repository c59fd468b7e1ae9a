import type { FormatRecord } from './record.js';

/** 2^e for 2^e ≤ |x| < 2^(e + 1), but at least the smallest normal number and at most 2^127. */
export function binadeOf(x: number, smallestNormal: number): number {
  let power = 2 ** 127;
  while (power > smallestNormal && !(power <= Math.abs(x))) power /= 2;
  return Number.isNaN(x) ? NaN : power;
}

/**
 * An fp64 value rounded to the format, ties to even, subnormals kept; every zero becomes +0.
 * @param power a number whose binade decides the quantum; default the value itself
 */
export function roundTo(format: FormatRecord, x: number, power = x): number {
  const shift = binadeOf(power, format.smallestNormal) * format.toQuantum;
  const rounded = x + shift - shift;
  return Math.abs(rounded) > format.largest ? Math.sign(rounded) * format.beyond : rounded;
}
