// AssemblyScript: four fp32 numbers as two pairs of fp64 ones. f64x2.promote_low_f32x4 gives the first pair.

/** The upper two numbers in fp64. */
// @inline
export function promoteHigh(x: v128): v128 {
  return f64x2.promote_low_f32x4(
    i8x16.shuffle(x, x, 8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15),
  );
}

/** Two pairs of fp64 numbers, rounded to fp32. */
// @inline
export function demote(low: v128, high: v128): v128 {
  return i32x4.shuffle(f32x4.demote_f64x2_zero(low), f32x4.demote_f64x2_zero(high), 0, 1, 4, 5);
}
