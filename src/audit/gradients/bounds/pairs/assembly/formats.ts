// AssemblyScript: ulps of a format, and roundings to it. Its laws are the comments of src/formats/round.ts.

import { halfUlpAt, nearestIn } from '../../../../bounds/assembly/format';

/** A number format, as `NumberFormat`; `isFinite` where it has neither infinities nor NaNs. */
@unmanaged
export class Format {
  precision: i32;
  minExponent: i32;
  maxExponent: i32;
  maxFinite: f64;
  isFinite: bool;
}

/** Half an ulp of a value known to within `error`: `outputRounding` to nearest. */
export function halfUlpOf(format: Format, value: f64, error: f64): f64 {
  const x = min<f64>(abs<f64>(value) + error, format.maxFinite);
  return halfUlpAt(x, format.precision, format.minExponent, format.maxExponent);
}

/** How far a value is from the nearest number of the format; ∞ beyond the largest. */
export function distanceToFormat(format: Format, value: f64): f64 {
  const precision = format.precision;
  const least = format.minExponent;
  const number = nearestIn(value, precision, least, format.maxFinite, format.isFinite);
  const distance = abs<f64>(number - value);
  return distance !== distance ? Infinity : distance;
}
