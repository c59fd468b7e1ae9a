// AssemblyScript: the spacing of a format's numbers. Definitions in TypeScript: src/formats/round.ts.

/** ⌊log2 x⌋ of a positive finite number. */
export function exponentOf(x: f64): i32 {
  const field = <i32>(reinterpret<u64>(x) >> 52);
  return field === 0 ? <i32>(reinterpret<u64>(x * 18014398509481984) >> 52) - 1077 : field - 1023;
}

/** 2^exponent: 0 below the subnormals, ∞ beyond fp64. */
export function powerOfTwo(exponent: i32): f64 {
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
