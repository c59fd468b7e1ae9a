import { formats, round, ulp, type FormatName } from '../../formats/index.js';

/** Half an ulp of `format` at a value known to within `error`: the rounding of an output. */
export function outputRounding(format: FormatName, value: number, error: number): number {
  const table = formats[format];
  return ulp(table, Math.min(Math.abs(value) + error, table.maxFinite)) / 2;
}

/** How far an exact output is from the nearest number of its format; ∞ beyond the largest. */
export function distanceToFormat(format: FormatName, value: number): number {
  const distance = Math.abs(round(formats[format], value) - value);
  return Number.isNaN(distance) ? Infinity : distance;
}
