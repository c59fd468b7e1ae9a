// AssemblyScript: fused multiply-adds in fp32, by fp64. Their definition is `fusedMultiplyAddFloat32` of
// src/arith.

import { demote, promoteHigh } from '../../../../src/simd/assembly/halves';

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

/** Four of a·factor + addends, each by `fusedMultiplyAdd`. */
// @inline
export function fusedLanes(a: v128, factor: f32, addends: v128): v128 {
  let all = f32x4.splat(
    fusedMultiplyAdd(f32x4.extract_lane(a, 0), factor, f32x4.extract_lane(addends, 0)),
  );
  all = f32x4.replace_lane(
    all,
    1,
    fusedMultiplyAdd(f32x4.extract_lane(a, 1), factor, f32x4.extract_lane(addends, 1)),
  );
  all = f32x4.replace_lane(
    all,
    2,
    fusedMultiplyAdd(f32x4.extract_lane(a, 2), factor, f32x4.extract_lane(addends, 2)),
  );
  return f32x4.replace_lane(
    all,
    3,
    fusedMultiplyAdd(f32x4.extract_lane(a, 3), factor, f32x4.extract_lane(addends, 3)),
  );
}

/**
 * Four of a·factor + addends, rounded once; `factor` and the addends `low` and `high` are in fp64. Results below 2^-126 may
 * be rounded twice unless it `coversTiny`, which is a constant.
 */
// @inline
export function fusedMultiplyAdd4(
  a: v128,
  factor: v128,
  addends: v128,
  low: v128,
  high: v128,
  coversTiny: bool,
): v128 {
  const lowSum = f64x2.add(f64x2.mul(f64x2.promote_low_f32x4(a), factor), low);
  const highSum = f64x2.add(f64x2.mul(promoteHigh(a), factor), high);
  const rounded = demote(lowSum, highSum);
  // Rounding twice can differ only from the middle of two fp32 numbers, or where fp32 is subnormal.
  const middle = i64x2.splat(0x10000000);
  const tail = i64x2.splat(0x1fffffff);
  let doubtful = v128.or(
    i64x2.eq(v128.and(lowSum, tail), middle),
    i64x2.eq(v128.and(highSum, tail), middle),
  );
  if (coversTiny)
    doubtful = v128.or(doubtful, f32x4.lt(f32x4.abs(rounded), f32x4.splat(1.1754945e-38)));
  if (!v128.any_true(doubtful)) return rounded;
  return fusedLanes(a, <f32>f64x2.extract_lane(factor, 0), addends);
}

/** x[j] = s[j]·scale + bias in place, each rounded once; `count` a multiple of 4. */
export function scaleSubtract(scores: usize, count: i32, scale: f32, bias: f32): void {
  const scale2 = f64x2.splat(scale);
  const bias2 = f64x2.splat(bias);
  const bias4 = f32x4.splat(bias);
  for (let i: usize = 0; i < (<usize>count) << 2; i += 16) {
    const four = v128.load(scores + i);
    v128.store(scores + i, fusedMultiplyAdd4(four, scale2, bias4, bias2, bias2, true));
  }
}
