import {
  formats,
  round,
  smallestNormal,
  type FormatName,
  type OverflowMode,
} from '../../formats/index.js';

/** A rounding to a format. */
export type Rounder = (x: number) => number;

/**
 * Rounds to nearest, by Veltkamp's splitting where the number is normal, for which a tie may go either
 * way: for emulations that are to err as much as a kernel, not to have its bits.
 * @param overflow what becomes of numbers beyond the largest
 */
export function rounderTo(name: FormatName, overflow: OverflowMode = 'saturate'): Rounder {
  const format = formats[name];
  const least = smallestNormal(format);
  const most = format.maxFinite / 2;
  const split = 2 ** (53 - format.precision) + 1;
  if (name === 'fp64') return (x) => x;
  if (name === 'fp32' && overflow === 'overflow') return Math.fround;
  return (x) => {
    const size = Math.abs(x);
    if (!(size >= least && size <= most)) return round(format, x, { overflow });
    const c = x * split;
    return c - (c - x);
  };
}
