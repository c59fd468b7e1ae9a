// AssemblyScript: 2^x in fp64, two lanes at a time, and what else several loops of fp64 do.

/** 1.5 · 2^52: adding it leaves a small integer in the low bits of the significand. */
const integerShift: f64 = 6755399441055744.0;

/**
 * 2^f for |f| ≤ 0.5 + 2^-12: the Taylor polynomial of degree 13 in f, Horner's rule, coefficients
 * ln(2)^k / k! rounded to fp64. Relative error below 4 · 2^-53 (see ../tile-level.ts).
 */
// @inline
export function exp2Fraction(f: v128): v128 {
  let q = f64x2.splat(1.3691488853904128e-12);
  q = f64x2.add(f64x2.mul(q, f), f64x2.splat(2.5678435993488206e-11));
  q = f64x2.add(f64x2.mul(q, f), f64x2.splat(4.4455382718708116e-10));
  q = f64x2.add(f64x2.mul(q, f), f64x2.splat(7.054911620801123e-9));
  q = f64x2.add(f64x2.mul(q, f), f64x2.splat(1.01780860092397e-7));
  q = f64x2.add(f64x2.mul(q, f), f64x2.splat(1.321548679014431e-6));
  q = f64x2.add(f64x2.mul(q, f), f64x2.splat(1.5252733804059841e-5));
  q = f64x2.add(f64x2.mul(q, f), f64x2.splat(1.540353039338161e-4));
  q = f64x2.add(f64x2.mul(q, f), f64x2.splat(1.3333558146428443e-3));
  q = f64x2.add(f64x2.mul(q, f), f64x2.splat(9.618129107628477e-3));
  q = f64x2.add(f64x2.mul(q, f), f64x2.splat(0.05550410866482158));
  q = f64x2.add(f64x2.mul(q, f), f64x2.splat(0.24022650695910072));
  q = f64x2.add(f64x2.mul(q, f), f64x2.splat(6.931471805599453e-1));
  return f64x2.add(f64x2.mul(q, f), f64x2.splat(1));
}

/** Multiplies a by 2^n for integers n (as fp64) with |n| ≤ 1000, a in [0.5, 2]: exact. */
// @inline
export function scaleByPowerOfTwo(a: v128, n: v128): v128 {
  return i64x2.add(a, i64x2.shl(f64x2.add(n, f64x2.splat(integerShift)), 52));
}

/** 2^w for |w| ≤ 1000. */
// @inline
export function exponential(w: v128): v128 {
  const n = f64x2.nearest(w);
  return scaleByPowerOfTwo(exp2Fraction(f64x2.sub(w, n)), n);
}

/** tanh(w / (2 log2 e)) = (2^w − 1)/(2^w + 1), the exponent cut off at ±128. */
// @inline
export function capped(w: v128): v128 {
  const one = f64x2.splat(1);
  const e = exponential(f64x2.max(f64x2.min(w, f64x2.splat(128)), f64x2.splat(-128)));
  return f64x2.div(f64x2.sub(e, one), f64x2.add(e, one));
}

/** The sum of two lanes. */
// @inline
export function sumOf(x: v128): f64 {
  return f64x2.extract_lane(x, 0) + f64x2.extract_lane(x, 1);
}
