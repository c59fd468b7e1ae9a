import { formats, ulp, type FormatName } from '../../src/formats/index.js';
import type { RowResult } from './row.js';

/**
 * How small a radius the caller wants. An element is good enough when its radius is at most
 * `ulpFraction` ulp of the output format, or at most `magnitudeFraction` of Σ p|v| / Σ p, whichever
 * is larger. Values are held in fp64, so no radius is asked to be below 2^-52 of its value.
 */
export interface Accuracy {
  readonly outputFormat: FormatName;
  /** In ulps of the output format. */
  readonly ulpFraction: number;
  /** Relative to Σ p|v| / Σ p; 0 to go by ulps alone. */
  readonly magnitudeFraction: number;
}

/** The LSE is asked for in ulps of fp32, but never below this: an LSE is absolute in nature. */
const lseFloor = 2 ** -34;

/** Whether every element of a row and its LSE reach the wanted accuracy. NaN radii do not. */
export function isAccurate(row: RowResult, accuracy: Accuracy): boolean {
  const format = formats[accuracy.outputFormat];
  for (let c = 0; c < row.out.length; c++) {
    const value = row.out[c]!;
    const allowed = Math.max(
      accuracy.ulpFraction * ulp(format, Math.min(Math.abs(value), format.maxFinite)),
      accuracy.magnitudeFraction * row.magnitude[c]!,
      2 ** -52 * Math.abs(value),
    );
    if (!(row.outRadius[c]! <= allowed)) return false;
  }
  const allowed = Math.max(
    accuracy.ulpFraction * ulp(formats.fp32, row.lse),
    2 ** -52 * Math.abs(row.lse),
    lseFloor,
  );
  return row.lseRadius <= allowed;
}
