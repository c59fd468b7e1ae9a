// AssemblyScript: the record of errors, whose layout is in ../record.ts, its lists of extremes, and the
// breaks of monotonicity that it counts.

export const listLength: i32 = 4;
export const entryBytes: usize = 16;
export const histogramBins: i32 = 64;
/** The shifted bits of 2^-3: exponent field 1020 and one fraction bit. */
export const firstBin: i32 = 2040;

export const countsOffset: usize = 48;
export const extentOffset: usize = 104;
export const breakCountOffset: usize = 120;
export const largestScaledOffset: usize = 128;
export const largestUlpOffset: usize = 192;
export const largestBreakOffset: usize = 256;
export const firstBreakOffset: usize = 320;
export const histogramOffset: usize = 352;

/** Puts a value above 0 into the list, behind larger ones and those of smaller ordinals. */
export function insert(list: usize, value: f64, ordinal: f64): void {
  // Not a NaN either, which an infinite difference times 0 is.
  if (!(value > 0)) return;
  let place: i32 = listLength;
  while (place > 0) {
    const before = list + <usize>(place - 1) * entryBytes;
    const held = load<f64>(before);
    if (held > value || (held === value && load<f64>(before, 8) < ordinal)) break;
    place--;
  }
  if (place === listLength) return;
  const from = list + <usize>place * entryBytes;
  memory.copy(from + entryBytes, from, <usize>(listLength - 1 - place) * entryBytes);
  store<f64>(from, value);
  store<f64>(from, ordinal, 8);
}

export function insertCopies(list: usize, value: f64, ordinal: f64, copies: i32): void {
  for (let i = 0; i < min<i32>(copies, listLength); i++) insert(list, value, ordinal + <f64>i);
}

// @inline
export function smallestOf(list: usize): f64 {
  return load<f64>(list + <usize>(listLength - 1) * entryBytes);
}

/**
 * Adds to a record the breaks of monotonicity between left[i] and right[i + 1]: where the first is
 * the larger, for sign 1, or the smaller, for −1. Their size is in ulps. Defined by `countBreaks` of
 * test/profile/accumulate-definition.ts.
 */
export function countBreaks(
  left: usize,
  right: usize,
  ulps: usize,
  pairs: i32,
  sign: f64,
  ordinal: f64,
  record: usize,
): void {
  const direction = f64x2.splat(sign);
  const zero = f64x2.splat(0);
  const largestBreak = record + largestBreakOffset;
  for (let i = 0; i < pairs; i += 2) {
    const o: usize = (<usize>i) << 3;
    const step = f64x2.sub(v128.load(left + o), v128.load(right + o + 8));
    const drop = f64x2.mul(step, direction);
    const broken = f64x2.gt(drop, zero);
    // Most often no lane is broken.
    if (!i64x2.bitmask(broken)) continue;
    const size = f64x2.mul(drop, v128.load(ulps + o));
    for (let lane = 0; lane < min<i32>(2, pairs - i); lane++) {
      const isFirst = lane === 0;
      if (!(isFirst ? i64x2.extract_lane(broken, 0) : i64x2.extract_lane(broken, 1))) continue;
      const at = ordinal + <f64>(i + lane);
      const count = load<f64>(record + breakCountOffset);
      if (count < <f64>listLength)
        store<f64>(record + firstBreakOffset + ((<usize>count) << 3), at);
      store<f64>(record + breakCountOffset, count + 1);
      insert(largestBreak, isFirst ? f64x2.extract_lane(size, 0) : f64x2.extract_lane(size, 1), at);
    }
  }
}
