// AssemblyScript: the inputs of a segment in order, and the classes of its results.

/**
 * The bit patterns of `count` fp32 numbers in ascending order from the ordinal on. Defined by
 * `bitsOfOrdinal` of ../float32-order.ts.
 */
export function fillInputs(inputs: usize, ordinal: u32, count: i32): void {
  for (let i = 0; i < count; i++) {
    const at = ordinal + i;
    store<u32>(inputs + ((<usize>i) << 2), at >> 31 ? at ^ 0x80000000 : ~at);
  }
}

// @inline
function sum(x: v128): i32 {
  return (
    i32x4.extract_lane(x, 0) +
    i32x4.extract_lane(x, 1) +
    i32x4.extract_lane(x, 2) +
    i32x4.extract_lane(x, 3)
  );
}

// @inline
function fold(x: v128, smallest: bool): i32 {
  const y = i8x16.shuffle(x, x, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
  const pair = smallest ? i32x4.min_s(x, y) : i32x4.max_s(x, y);
  const a = i32x4.extract_lane(pair, 0);
  const b = i32x4.extract_lane(pair, 1);
  return smallest ? min<i32>(a, b) : max<i32>(a, b);
}

/**
 * The classes of `count` fp32 results: i32 counts of zeros, of subnormal numbers, of infinities, of
 * NaNs, then the smallest and the largest in order (0 for +0, −1 for −0), NaNs left out. Defined by
 * `classify` of test/profile/accumulate-definition.ts.
 */
export function classify(results: usize, count: i32, record: usize): void {
  const sign = i32x4.splat(0x7fffffff);
  const infinityBits = i32x4.splat(0x7f800000);
  const hidden = i32x4.splat(0x00800000);
  const none = i32x4.splat(0);
  let zeros = none;
  let belowNormal = none;
  let infinities = none;
  let nans = none;
  let least = i32x4.splat(i32.MAX_VALUE);
  let most = i32x4.splat(i32.MIN_VALUE);
  for (let i = 0; i < count; i += 4) {
    const y = v128.load(results + ((<usize>i) << 2));
    const lanes = i32x4.lt_s(i32x4(0, 1, 2, 3), i32x4.splat(count - i));
    const magnitude = v128.and(y, sign);
    const nan = i32x4.gt_s(magnitude, infinityBits);
    zeros = i32x4.sub(zeros, v128.and(i32x4.eq(magnitude, none), lanes));
    belowNormal = i32x4.sub(belowNormal, v128.and(i32x4.lt_s(magnitude, hidden), lanes));
    infinities = i32x4.sub(infinities, v128.and(i32x4.eq(magnitude, infinityBits), lanes));
    nans = i32x4.sub(nans, v128.and(nan, lanes));
    const order = v128.xor(y, v128.and(i32x4.shr_s(y, 31), sign));
    const counted = v128.andnot(lanes, nan);
    least = v128.bitselect(i32x4.min_s(least, order), least, counted);
    most = v128.bitselect(i32x4.max_s(most, order), most, counted);
  }
  const zeroCount = sum(zeros);
  store<i32>(record, zeroCount);
  store<i32>(record, sum(belowNormal) - zeroCount, 4);
  store<i32>(record, sum(infinities), 8);
  store<i32>(record, sum(nans), 12);
  store<i32>(record, fold(least, true), 16);
  store<i32>(record, fold(most, false), 20);
}
