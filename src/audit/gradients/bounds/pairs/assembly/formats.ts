// AssemblyScript: ulps of a format, and roundings to it. Its laws are the comments of src/formats/round.ts.

/** A number format, as `NumberFormat`; `isFinite` where it has neither infinities nor NaNs. */
@unmanaged
export class Format {
  precision: i32;
  minExponent: i32;
  maxExponent: i32;
  maxFinite: f64;
  isFinite: bool;
}

/** ⌊log2 x⌋ of a positive finite number. */
function exponentOf(x: f64): i32 {
  const field = <i32>(reinterpret<u64>(x) >> 52);
  return field === 0 ? <i32>(reinterpret<u64>(x * 18014398509481984) >> 52) - 1077 : field - 1023;
}

/** 2^exponent: 0 below the subnormals, ∞ beyond fp64. */
function powerOfTwo(exponent: i32): f64 {
  if (exponent > 1023) return Infinity;
  if (exponent < -1074) return 0;
  if (exponent >= -1022) return reinterpret<f64>((<u64>(exponent + 1023)) << 52);
  const lowest: u64 = 1;
  return reinterpret<f64>(lowest << (exponent + 1074));
}

/** Half an ulp of a value known to within `error`: `outputRounding` to nearest. */
export function halfUlpOf(format: Format, value: f64, error: f64): f64 {
  const x = min<f64>(abs<f64>(value) + error, format.maxFinite);
  if (x !== x) return NaN;
  const least = format.minExponent;
  const exponent = x === 0 ? least : max<i32>(exponentOf(x), least);
  return powerOfTwo(min<i32>(exponent, format.maxExponent) - format.precision + 1) / 2;
}

/** To the nearest number of the format, ties to even: NaN beyond the largest, or that. */
function rounded(format: Format, value: f64): f64 {
  const magnitude = abs<f64>(value);
  const maxFinite = format.maxFinite;
  const beyond = format.isFinite ? maxFinite : NaN;
  if (magnitude === 0) return value;
  if (magnitude !== magnitude) return beyond;
  if (magnitude === Infinity) return copysign<f64>(beyond, value);
  const binade = max<i32>(exponentOf(magnitude), format.minExponent);
  const quantum = powerOfTwo(max<i32>(binade - format.precision + 1, -1074));
  const result = nearest<f64>(magnitude / quantum) * quantum;
  return copysign<f64>(result > maxFinite ? beyond : result, value);
}

/** How far a value is from the nearest number of the format; ∞ beyond the largest. */
export function distanceToFormat(format: Format, value: f64): f64 {
  const distance = abs<f64>(rounded(format, value) - value);
  return distance !== distance ? Infinity : distance;
}
