// AssemblyScript: breaks of monotonicity, added to a record.
import { breakCountOffset, firstBreakOffset, insert, largestBreakOffset, listLength } from './record';

/**
 * Adds to a record the breaks of monotonicity between left[i] and right[i + 1]: where the first is
 * the larger, for sign 1, or the smaller, for −1. Their size is in ulps. Defined by `countBreaks` of
 * ../accumulate.ts.
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
    const o: usize = <usize>i << 3;
    const step = f64x2.sub(v128.load(left + o), v128.load(right + o + 8));
    const drop = f64x2.mul(step, direction);
    const broken = f64x2.gt(drop, zero);
    // Most often no lane is broken.
    if (!i64x2.bitmask(broken)) continue;
    const size = f64x2.mul(drop, v128.load(ulps + o));
    for (let lane = 0; lane < min<i32>(2, pairs - i); lane++) {
      const isFirst = lane == 0;
      if (!(isFirst ? i64x2.extract_lane(broken, 0) : i64x2.extract_lane(broken, 1))) continue;
      const at = ordinal + <f64>(i + lane);
      const count = load<f64>(record + breakCountOffset);
      if (count < <f64>listLength)
        store<f64>(record + firstBreakOffset + (<usize>count << 3), at);
      store<f64>(record + breakCountOffset, count + 1);
      insert(
        largestBreak,
        isFirst ? f64x2.extract_lane(size, 0) : f64x2.extract_lane(size, 1),
        at,
      );
    }
  }
}
