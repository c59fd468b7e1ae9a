// AssemblyScript: conversions from fp32 to shorter formats on arrays of bit patterns, four lanes at a
// time. Defined by `evaluate` of each row of src/hardware/convert.ts.

const infinity: i32 = 0x7f800000;
const integerMagic: f32 = 8388608.0;

/**
 * How a format rounds, 40 bytes: fraction bits of fp32 beyond the format's; fp32's exponent bias less
 * the format's, times 2^23; the fp32 bits of the smallest normal number that is not also one of fp32,
 * else 0; the reciprocal of the smallest subnormal (f32); the patterns of the largest finite number and
 * of what overflow, infinity and NaN become; the distance of the sign bits; whether to round toward
 * zero.
 */
// @inline
export function convert4(bits: v128, format: usize): v128 {
  const drop = load<i32>(format);
  const towardZero = load<i32>(format, 36) !== 0;
  const magnitude = v128.and(bits, i32x4.splat(0x7fffffff));
  const rebiased = i32x4.sub(magnitude, v128.load32_splat(format, 4));
  const units = f32x4.mul(magnitude, v128.load32_splat(format, 12));
  let normal: v128;
  let subnormal: v128;
  if (towardZero) {
    normal = i32x4.shr_s(rebiased, drop);
    subnormal = f32x4.trunc(units);
  } else {
    const lowest = v128.and(i32x4.shr_s(rebiased, drop), i32x4.splat(1));
    const half = i32x4.splat((1 << (drop - 1)) - 1);
    normal = i32x4.shr_s(i32x4.add(i32x4.add(rebiased, half), lowest), drop);
    subnormal = f32x4.nearest(units);
  }
  // Below 2^23 the sum's fraction is the integer.
  subnormal = i32x4.sub(f32x4.add(subnormal, f32x4.splat(integerMagic)), f32x4.splat(integerMagic));
  let result = v128.bitselect(
    subnormal,
    normal,
    i32x4.lt_s(magnitude, v128.load32_splat(format, 8)),
  );
  result = v128.bitselect(
    v128.load32_splat(format, 20),
    result,
    i32x4.gt_s(result, v128.load32_splat(format, 16)),
  );
  result = v128.bitselect(
    v128.load32_splat(format, 24),
    result,
    i32x4.eq(magnitude, i32x4.splat(infinity)),
  );
  const sign = i32x4.shr_u(v128.and(bits, i32x4.splat(0x80000000)), load<i32>(format, 32));
  return v128.bitselect(
    v128.load32_splat(format, 28),
    v128.or(result, sign),
    i32x4.gt_s(magnitude, i32x4.splat(infinity)),
  );
}

/** `count` is a multiple of 4. */
export function convert(inputs: usize, results: usize, count: i32, format: usize): void {
  for (let i: usize = 0; i < (<usize>count) << 2; i += 16)
    v128.store(results + i, convert4(v128.load(inputs + i), format));
}
