// AssemblyScript: fused multiply-adds in fp32, by fp64. Their definition is `fusedMultiplyAddFloat32` of
// src/arith.

/**
 * a·b + c rounded once. The product is exact in fp64; where the fp64 sum lies in the middle of two
 * fp32 numbers, the part that it lost decides.
 */
export function fusedMultiplyAdd(a: f32, b: f32, c: f32): f32 {
  const product = <f64>a * <f64>b;
  const addend = <f64>c;
  const sum = product + addend;
  if (!(abs(sum) < Infinity)) return <f32>sum;
  const back = sum - product;
  const lost = product - (sum - back) + (addend - back);
  if (lost === 0) return <f32>sum;
  // Rounded to odd, the sum rounds on to fp32 as the exact one does.
  let bits = reinterpret<u64>(sum);
  if (!(bits & 1)) bits = lost > 0 === sum > 0 ? bits | 1 : bits - 1;
  return <f32>reinterpret<f64>(bits);
}

/** Four of s·scale + bias, rounded once. */
// @inline
function scaleSubtract4(s: v128, scale: v128, bias: v128): v128 {
  const upper = i8x16.shuffle(s, s, 8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15);
  const productLow = f64x2.mul(f64x2.promote_low_f32x4(s), scale);
  const productHigh = f64x2.mul(f64x2.promote_low_f32x4(upper), scale);
  const low = f64x2.add(productLow, bias);
  const high = f64x2.add(productHigh, bias);
  const rounded = i32x4.shuffle(
    f32x4.demote_f64x2_zero(low),
    f32x4.demote_f64x2_zero(high),
    0,
    1,
    4,
    5,
  );
  // Rounding twice can differ only from the middle of two fp32 numbers, or where fp32 is subnormal.
  const middle = i64x2.splat(0x10000000);
  const tail = i64x2.splat(0x1fffffff);
  const doubtful = v128.or(
    i64x2.eq(v128.and(low, tail), middle),
    i64x2.eq(v128.and(high, tail), middle),
  );
  const tiny = f32x4.lt(f32x4.abs(rounded), f32x4.splat(1.1754945e-38));
  if (!v128.any_true(v128.or(doubtful, tiny))) return rounded;
  const factor = <f32>f64x2.extract_lane(scale, 0);
  const addend = <f32>f64x2.extract_lane(bias, 0);
  let exact = f32x4.splat(fusedMultiplyAdd(f32x4.extract_lane(s, 0), factor, addend));
  exact = f32x4.replace_lane(exact, 1, fusedMultiplyAdd(f32x4.extract_lane(s, 1), factor, addend));
  exact = f32x4.replace_lane(exact, 2, fusedMultiplyAdd(f32x4.extract_lane(s, 2), factor, addend));
  return f32x4.replace_lane(exact, 3, fusedMultiplyAdd(f32x4.extract_lane(s, 3), factor, addend));
}

/** x[j] = s[j]·scale + bias in place, each rounded once; `count` a multiple of 4. */
export function scaleSubtract(scores: usize, count: i32, scale: f32, bias: f32): void {
  const scale2 = f64x2.splat(scale);
  const bias2 = f64x2.splat(bias);
  for (let i: usize = 0; i < (<usize>count) << 2; i += 16)
    v128.store(scores + i, scaleSubtract4(v128.load(scores + i), scale2, bias2));
}
