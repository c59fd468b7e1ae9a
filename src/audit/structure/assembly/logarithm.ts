// AssemblyScript: log2 of fp64 numbers, two lanes at a time.

/** Multiplied by it, subnormal numbers are normal. */
const fromSubnormal: f64 = 18014398509481984; // 2^54

/**
 * log2 x for positive finite x, subnormal ones too: exact for powers of two, else within 2^-50 of 1 and of the result. With
 * x = m·2^e and m from √½ to √2, log2 m = 2 log2(e)·artanh s, s = (m − 1)/(m + 1), |s| < 0.1716: the series of artanh to s^21
 * leaves out less than 2^-58.
 */
// @inline
export function logarithm(x: v128): v128 {
  const isSubnormal = f64x2.lt(x, f64x2.splat(2.2250738585072014e-308));
  const normal = v128.bitselect(f64x2.mul(x, f64x2.splat(fromSubnormal)), x, isSubnormal);
  // The biased exponent as the low bits of 2^52, and the significand with the exponent of 1.
  const raised = v128.or(i64x2.shr_u(normal, 52), i64x2.splat(0x4330000000000000));
  let exponent = f64x2.sub(raised, f64x2.splat(4503599627370496 + 1023));
  exponent = f64x2.sub(exponent, v128.and(f64x2.splat(54), isSubnormal));
  let m = v128.or(
    v128.and(normal, i64x2.splat(0x000fffffffffffff)),
    i64x2.splat(0x3ff0000000000000),
  );
  const isLarge = f64x2.gt(m, f64x2.splat(1.4142135623730951));
  m = f64x2.mul(m, v128.bitselect(f64x2.splat(0.5), f64x2.splat(1), isLarge));
  exponent = f64x2.add(exponent, v128.and(f64x2.splat(1), isLarge));
  const s = f64x2.div(f64x2.sub(m, f64x2.splat(1)), f64x2.add(m, f64x2.splat(1)));
  const z = f64x2.mul(s, s);
  let series = f64x2.splat(1.0 / 21.0);
  series = f64x2.add(f64x2.mul(series, z), f64x2.splat(1.0 / 19.0));
  series = f64x2.add(f64x2.mul(series, z), f64x2.splat(1.0 / 17.0));
  series = f64x2.add(f64x2.mul(series, z), f64x2.splat(1.0 / 15.0));
  series = f64x2.add(f64x2.mul(series, z), f64x2.splat(1.0 / 13.0));
  series = f64x2.add(f64x2.mul(series, z), f64x2.splat(1.0 / 11.0));
  series = f64x2.add(f64x2.mul(series, z), f64x2.splat(1.0 / 9.0));
  series = f64x2.add(f64x2.mul(series, z), f64x2.splat(1.0 / 7.0));
  series = f64x2.add(f64x2.mul(series, z), f64x2.splat(1.0 / 5.0));
  series = f64x2.add(f64x2.mul(series, z), f64x2.splat(1.0 / 3.0));
  series = f64x2.add(f64x2.mul(series, z), f64x2.splat(1));
  const ofSignificand = f64x2.mul(f64x2.mul(series, s), f64x2.splat(2.8853900817779268));
  return f64x2.add(exponent, ofSignificand);
}
