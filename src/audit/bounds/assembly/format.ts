// AssemblyScript: the spacing of a format's numbers, and the nearest of them. Definitions in TypeScript: src/formats/round.ts.

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

/** Half the spacing of a format's numbers at x ≥ 0, which is at most its largest; NaN at NaN. */
export function halfUlpAt(x: f64, precision: i32, minExponent: i32, maxExponent: i32): f64 {
  if (x !== x) return NaN;
  const exponent = x === 0 ? minExponent : max<i32>(exponentOf(x), minExponent);
  return powerOfTwo(min<i32>(exponent, maxExponent) - precision + 1) / 2;
}

/**
 * The nearest number of a format, ties to even: NaN beyond the largest and for a NaN, or the largest where the format saturates. Its numbers
 * have `precision` bits from 2^minExponent on.
 */
export function nearestIn(
  value: f64,
  precision: i32,
  minExponent: i32,
  maxFinite: f64,
  saturates: bool,
): f64 {
  const magnitude = abs<f64>(value);
  const beyond = saturates ? maxFinite : NaN;
  if (magnitude === 0) return value;
  if (magnitude !== magnitude) return beyond;
  if (magnitude === Infinity) return copysign<f64>(beyond, value);
  const binade = max<i32>(exponentOf(magnitude), minExponent);
  const quantum = powerOfTwo(max<i32>(binade - precision + 1, -1074));
  const result = nearest<f64>(magnitude / quantum) * quantum;
  return copysign<f64>(result > maxFinite ? beyond : result, value);
}
