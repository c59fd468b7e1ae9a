// AssemblyScript: numbers of the formats of 16 bits in fp64, and measures of their rows, eight patterns at a time. Counts are multiples
// of 8: who calls leaves room behind the last pattern.

/** The fp64 values of four fp32 numbers. */
// @inline
function store4(target: usize, floats: v128): void {
  v128.store(target, f64x2.promote_low_f32x4(floats));
  v128.store(target, f64x2.promote_low_f32x4(i64x2.shuffle(floats, floats, 1, 1)), 16);
}

/** The values of bf16 patterns, which are the upper halves of those of fp32. */
export function widenBfloat16(source: usize, target: usize, count: i32): void {
  let to = target;
  for (let at: usize = 0; at < (<usize>count) << 1; at += 16) {
    const patterns = v128.load(source + at);
    store4(to, i32x4.shl(i32x4.extend_low_i16x8_u(patterns), 16));
    store4(to + 32, i32x4.shl(i32x4.extend_high_i16x8_u(patterns), 16));
    to += 64;
  }
}

/**
 * The fp32 values of four fp16 patterns, widened to 32 bits. Exponent and fraction in fp32's places are the number divided by 2^112,
 * exactly, where subnormals too are what fp32 takes them for; infinities and NaNs get fp32's exponent of them besides.
 */
// @inline
function floatsOfHalves(patterns: v128): v128 {
  const magnitude = v128.and(patterns, i32x4.splat(0x7fff));
  const sign = i32x4.shl(v128.xor(patterns, magnitude), 16);
  const scaled = f32x4.mul(
    i32x4.shl(magnitude, 13),
    f32x4.splat(5192296858534827628530496329220096.0),
  );
  const special = i32x4.gt_s(magnitude, i32x4.splat(0x7bff));
  return v128.or(v128.or(scaled, sign), v128.and(special, i32x4.splat(0x7f800000)));
}

/** The values of fp16 patterns. */
export function widenHalf(source: usize, target: usize, count: i32): void {
  let to = target;
  for (let at: usize = 0; at < (<usize>count) << 1; at += 16) {
    const patterns = v128.load(source + at);
    store4(to, floatsOfHalves(i32x4.extend_low_i16x8_u(patterns)));
    store4(to + 32, floatsOfHalves(i32x4.extend_high_i16x8_u(patterns)));
    to += 64;
  }
}

/** The largest of the magnitudes' patterns. */
export function largestPattern(source: usize, count: i32): i32 {
  const magnitude = i16x8.splat(0x7fff);
  let most = i16x8.splat(0);
  for (let at: usize = 0; at < (<usize>count) << 1; at += 16)
    most = i16x8.max_s(most, v128.and(v128.load(source + at), magnitude));
  return largestLane(most);
}

// @inline
function largestLane(x: v128): i32 {
  const half = i16x8.max_s(x, i64x2.shuffle(x, x, 1, 0));
  const pair = i16x8.max_s(half, i32x4.shuffle(half, half, 1, 0, 3, 2));
  return max<i32>(i16x8.extract_lane_s(pair, 0), i16x8.extract_lane_s(pair, 1));
}

/** Σ x² of four rows of `dim` numbers each, every sum in the order of its columns. */
// @inline
function squaresOfFour(values: usize, stride: usize, squares: usize): void {
  let low = f64x2.splat(0);
  let high = f64x2.splat(0);
  for (let at = values; at < values + stride; at += 8) {
    const a = v128.load64_lane(at + stride, v128.load64_zero(at), 1);
    const b = v128.load64_lane(at + 3 * stride, v128.load64_zero(at + 2 * stride), 1);
    low = f64x2.add(low, f64x2.mul(a, a));
    high = f64x2.add(high, f64x2.mul(b, b));
  }
  v128.store(squares, low);
  v128.store(squares, high, 16);
}

/** Rows that are measured at once, at most. */
const mostRows: usize = 64;

/**
 * Measures `rows` rows, at most 64, of `dim` finite numbers, a multiple of 8: of each row Σ x² in the order of the columns, with room
 * for three rows more. Then patterns, 64 of each: of the rows' largest magnitudes, of the smallest, and of the smallest that are not 0
 * (0 for none); behind these those of the columns' largest magnitudes.
 */
export function measureRows(
  patterns: usize,
  values: usize,
  rows: i32,
  dim: i32,
  squares: usize,
  largest: usize,
): void {
  const least = largest + 2 * mostRows;
  const smallest = least + 2 * mostRows;
  const columns = smallest + 2 * mostRows;
  const stride: usize = (<usize>dim) << 3;
  for (let row = 0; row < rows; row += 4)
    squaresOfFour(values + <usize>row * stride, stride, squares + ((<usize>row) << 3));
  const width: usize = (<usize>dim) << 1;
  memory.fill(columns, 0, width);
  const one = i16x8.splat(1);
  let at = patterns;
  for (let row: usize = 0; row < <usize>rows; row++) {
    let most = i16x8.splat(0);
    let fewest = i16x8.splat(-1);
    // Less 1, so that zeros are the largest of all.
    let nonzero = i16x8.splat(-1);
    for (let column: usize = 0; column < width; column += 16) {
      const magnitude = v128.and(v128.load(at + column), i16x8.splat(0x7fff));
      most = i16x8.max_s(most, magnitude);
      fewest = i16x8.min_u(fewest, magnitude);
      nonzero = i16x8.min_u(nonzero, i16x8.sub(magnitude, one));
      v128.store(columns + column, i16x8.max_s(v128.load(columns + column), magnitude));
    }
    store<u16>(largest + (row << 1), <u16>largestLane(most));
    store<u16>(least + (row << 1), smallestLane(fewest));
    store<u16>(smallest + (row << 1), smallestLane(nonzero) + 1);
    at += width;
  }
}

// @inline
function smallestLane(x: v128): u16 {
  const half = i16x8.min_u(x, i64x2.shuffle(x, x, 1, 0));
  const pair = i16x8.min_u(half, i32x4.shuffle(half, half, 1, 0, 3, 2));
  return min<u16>(i16x8.extract_lane_u(pair, 0), i16x8.extract_lane_u(pair, 1));
}
