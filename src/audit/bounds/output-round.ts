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

/** What moves an output before it is rounded: signed, a standard deviation, a worst case. */
export interface BeforeRounding {
  readonly predicted: number;
  readonly noise: number;
  readonly systematic: number;
}

/** Standard deviations within which noise is taken to stay when the rounding is called known. */
const sureDeviations = 12;

/**
 * How the rounding of an output to a format spreads. `known` is the magnitude of the whole error where the
 * number that it is rounded to is certain, else null; `variance` that of the rounding where it is not:
 * uniform, unless so little moves the output that the rounding is its distance from the nearest number.
 */
export function roundingSpread(
  format: FormatName,
  exact: number,
  { predicted, noise, systematic }: BeforeRounding,
): { readonly known: number | null; readonly variance: number } {
  const moved = exact + predicted;
  const half = outputRounding(format, moved, 0);
  const distance = distanceToFormat(format, moved);
  if (distance + sureDeviations * noise + systematic < half)
    return { known: Math.abs(round(formats[format], moved) - exact), variance: 0 };
  const off = noise + systematic;
  const nearest = Math.min(distance + off, half);
  const rounding = off < half / 8 ? nearest : Math.min(half / Math.sqrt(3), nearest);
  return { known: null, variance: rounding ** 2 };
}
