// AssemblyScript: FlashAttention-4's software exp2 on arrays of bit patterns, four lanes at a time.
// What it computes and why is written in kernels/online-softmax/exp2-polynomial.ts,
// whose plain function this equals.

import { demote, promoteHigh } from './halves';

/** 2^23 + 2^22. */
const toInteger: f32 = 12582912.0;
const smallestInput: f32 = -127.0;
/** From here on the range reduction is no floor. */
const largestFloor: f32 = 4194304.0;

/** p·f + c in fp64, rounded to fp32. */
// @inline
function multiplyAdd(p: v128, fLow: v128, fHigh: v128, c: v128): v128 {
  const low = f64x2.add(f64x2.mul(f64x2.promote_low_f32x4(p), fLow), c);
  return demote(low, f64x2.add(f64x2.mul(promoteHigh(p), fHigh), c));
}

/** x + 2^23 + 2^22 rounded toward −∞ to fp32, for 2^22 ≤ x ≤ ∞. */
function addRoundingDown(x: f32): f32 {
  // Beyond, half an ulp of x is more than what is added; below, the fp64 sum is exact.
  if (x >= 1125899906842624.0) return x;
  const sum = <f64>x + <f64>toInteger;
  const nearest = <f32>sum;
  return <f64>nearest > sum ? reinterpret<f32>(reinterpret<u32>(nearest) - 1) : nearest;
}

/** The result for one input from 2^22 on. */
function exp2PolynomialBeyond(x: f32, coefficients: usize, degree: i32): u32 {
  const rounded = addRoundingDown(x);
  const fraction = x - (rounded - toInteger);
  let p = <f32>load<f64>(coefficients + ((<usize>degree) << 3));
  for (let k = degree - 1; k >= 0; k--)
    p = <f32>(<f64>p * <f64>fraction + load<f64>(coefficients + ((<usize>k) << 3)));
  const polynomial: u32 = p !== p ? 0x7fffffff : reinterpret<u32>(p);
  return (reinterpret<u32>(rounded) << 23) + polynomial;
}

// @inline
function laneBeyond(x: f32, result: u32, coefficients: usize, degree: i32): u32 {
  return x >= largestFloor ? exp2PolynomialBeyond(x, coefficients, degree) : result;
}

/** The results with those for inputs from 2^22 on replaced. */
function withLanesBeyond(x: v128, result: v128, coefficients: usize, degree: i32): v128 {
  const x0 = f32x4.extract_lane(x, 0);
  const x1 = f32x4.extract_lane(x, 1);
  const x2 = f32x4.extract_lane(x, 2);
  const x3 = f32x4.extract_lane(x, 3);
  let all = i32x4.splat(laneBeyond(x0, i32x4.extract_lane(result, 0), coefficients, degree));
  all = i32x4.replace_lane(
    all,
    1,
    laneBeyond(x1, i32x4.extract_lane(result, 1), coefficients, degree),
  );
  all = i32x4.replace_lane(
    all,
    2,
    laneBeyond(x2, i32x4.extract_lane(result, 2), coefficients, degree),
  );
  return i32x4.replace_lane(
    all,
    3,
    laneBeyond(x3, i32x4.extract_lane(result, 3), coefficients, degree),
  );
}

/** Four results; `coefficients` are fp64, from c0 up. */
// @inline
export function exp2Polynomial4(x: v128, coefficients: usize, degree: i32): v128 {
  // NaN compares false: it becomes −127, as PTX's max has it.
  const clamped = f32x4.pmax(f32x4.splat(smallestInput), x);
  // add.rm.ftz: a subnormal input counts as zero.
  const normal = f32x4.ge(f32x4.abs(clamped), f32x4.splat(1.1754943508222875e-38));
  const integer = v128.and(f32x4.floor(clamped), normal);
  const fraction = f32x4.sub(clamped, integer);
  const fLow = f64x2.promote_low_f32x4(fraction);
  const fHigh = promoteHigh(fraction);
  let p = f32x4.demote_f64x2_zero(v128.load64_splat(coefficients + ((<usize>degree) << 3)));
  p = i32x4.shuffle(p, p, 0, 0, 0, 0);
  for (let k = degree - 1; k >= 0; k--)
    p = multiplyAdd(p, fLow, fHigh, v128.load64_splat(coefficients + ((<usize>k) << 3)));
  const shifted = i32x4.shl(f32x4.add(integer, f32x4.splat(toInteger)), 23);
  const result = i32x4.add(shifted, p);
  if (!v128.any_true(f32x4.ge(x, f32x4.splat(largestFloor)))) return result;
  return withLanesBeyond(x, result, coefficients, degree);
}

/** `count` is a multiple of 4. */
export function exp2Polynomial(
  inputs: usize,
  results: usize,
  count: i32,
  coefficients: usize,
  degree: i32,
): void {
  for (let i: usize = 0; i < (<usize>count) << 2; i += 16)
    v128.store(results + i, exp2Polynomial4(v128.load(inputs + i), coefficients, degree));
}
