import type { TechniqueBound } from './technique-bound.js';
import { type FormatName, formats, round, ulp } from '../../formats/index.js';
import type { OutputRounding } from '../../../kernels/index.js';

// The end of a row: `normalise` and `output-round`, section 8 of docs/theory/bounds.md.

/** `normalise`: dropout's factor; the reciprocal and the product with it; the logarithm and its sum with m. Theorem 8. */
export const normaliseBound: TechniqueBound = {
  // A kernel that divides every weight by the row sum rounds every one.
  elements: ({ arithmetic: { finish, maximum, underflow, dropout } }) => {
    const isOfWeights = maximum.kind === 'whole-row';
    const factor = dropout?.factor ?? 0;
    const constant = underflow.sums;
    return isOfWeights
      ? { magnitude: finish.normalise + factor, constant }
      : { size: finish.normalise, magnitude: factor, constant };
  },
  lse: (row) => {
    const { finish, scaleError } = row.arithmetic;
    const { logarithm } = row;
    const natural = Math.abs(row.lse);
    const maximum = row.finalMaximum * Math.LN2;
    return (
      finish.logarithm * Math.LN2 * Math.max(1, logarithm) * (1 + finish.logarithm) +
      finish.elementwise * (2 * maximum + 2 * logarithm + 3 * natural) +
      Math.abs(scaleError) * maximum
    );
  },
};

/**
 * The most by which rounding to a format may move a value known to within `error`: half an ulp, or a whole
 * one where rounding is not to nearest.
 */
export function outputRounding(
  format: FormatName,
  value: number,
  error: number,
  rounding: OutputRounding = 'nearest',
): number {
  const table = formats[format];
  const unit = ulp(table, Math.min(Math.abs(value) + error, table.maxFinite));
  return rounding === 'nearest' ? unit / 2 : unit;
}

/** The distance of an exact output from the nearest number of its format; ∞ beyond the largest. */
export function distanceToFormat(format: FormatName, value: number): number {
  const distance = Math.abs(round(formats[format], value) - value);
  return Number.isNaN(distance) ? Infinity : distance;
}

/** Errors of an output before it is rounded: signed, a standard deviation, a worst case. */
interface BeforeRounding {
  readonly predicted: number;
  readonly noise: number;
  readonly systematic: number;
}

/** Standard deviations within which noise is taken to stay when the rounding is called known. */
export const sureDeviations = 12;

/**
 * The spread of an output's rounding to a format. `known` is the magnitude of the whole error where the
 * number that it is rounded to is certain, else null; `variance` is that of the rounding where it is not:
 * uniform, unless the output moves so little that the rounding is its distance from the nearest number.
 * `systematic` is the part that does not average out, as that of truncation.
 */
export function roundingSpread(
  format: FormatName,
  exact: number,
  { predicted, noise, systematic }: BeforeRounding,
  rounding: OutputRounding = 'nearest',
): { readonly known: number | null; readonly variance: number; readonly systematic: number } {
  const moved = exact + predicted;
  const half = outputRounding(format, moved, 0);
  // Up or down at random, less than an ulp apart: sub-Gaussian with half of that.
  if (rounding === 'stochastic') return { known: null, variance: half ** 2, systematic: 0 };
  if (rounding === 'truncated') return { known: null, variance: 0, systematic: 2 * half };
  const distance = distanceToFormat(format, moved);
  if (distance + sureDeviations * noise + systematic < half)
    return { known: Math.abs(round(formats[format], moved) - exact), variance: 0, systematic: 0 };
  const off = noise + systematic;
  const nearest = Math.min(distance + off, half);
  const spread = off < half / 8 ? nearest : Math.min(half / Math.sqrt(3), nearest);
  return { known: null, variance: spread ** 2, systematic: 0 };
}
