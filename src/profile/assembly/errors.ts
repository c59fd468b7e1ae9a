// AssemblyScript: the errors of rounded results, added to a record.
import { addCount, addLanes, allLanes, firstLane, larger } from './lanes';
import {
  countsOffset,
  extentOffset,
  firstBin,
  histogramBins,
  histogramOffset,
  insertCopies,
  largestScaledOffset,
  largestUlpOffset,
  smallestOf,
} from './record';

/**
 * Puts the errors that are not below the smallest of the list into it, the last input first: where
 * errors grow along the inputs, few have to be moved.
 */
function insertErrors(
  z: usize,
  reference: usize,
  scale: usize,
  count: i32,
  repeat: i32,
  ordinal: f64,
  list: usize,
): void {
  for (let i = (count - 1) & ~1; i >= 0; i -= 2) {
    const o: usize = (<usize>i) << 3;
    const y = v128.load(z + o);
    const error = f64x2.mul(f64x2.sub(y, v128.load(reference + o)), v128.load(scale + o));
    const size = f64x2.abs(error);
    if (!i64x2.bitmask(f64x2.ge(size, f64x2.splat(smallestOf(list))))) continue;
    if (i + 1 < count && abs<f64>(f64x2.extract_lane(y, 1)) < Infinity)
      insertCopies(list, f64x2.extract_lane(size, 1), ordinal + <f64>(i + 1), repeat);
    if (abs<f64>(f64x2.extract_lane(y, 0)) < Infinity)
      insertCopies(list, f64x2.extract_lane(size, 0), ordinal + <f64>i, repeat);
  }
}

/** Arrays of the same inputs, fp64, and the record that their errors are added to. */
@unmanaged
export class ErrorArrays {
  /** The rounded results; their references, also correctly rounded; rounded results of the baseline. */
  z: usize;
  reference: usize;
  rounded: usize;
  baseline: usize;
  /** What errors are multiplied by; and the same for errors in ulps. */
  scale: usize;
  ulps: usize;
  /** Of the format. */
  smallestNormal: f64;
  record: usize;
}

/**
 * Adds the errors of `count` rounded results to a record, each counted `repeat` times; `repeat` is 1
 * unless `count` is. `ordinal` is that of the first input. Defined by `accumulate` of test/profile/accumulate-definition.ts.
 */
export function accumulate(arrays: ErrorArrays, count: i32, repeat: i32, ordinal: f64): void {
  const z = arrays.z;
  const reference = arrays.reference;
  const rounded = arrays.rounded;
  const baseline = arrays.baseline;
  const scale = arrays.scale;
  const ulps = arrays.ulps;
  const record = arrays.record;
  const infinity = f64x2.splat(Infinity);
  const zero = f64x2.splat(0);
  const normal = f64x2.splat(arrays.smallestNormal);
  let sumScaled = zero;
  let sumScaledSize = zero;
  let sumScaledSquare = zero;
  let sumUlp = zero;
  let sumUlpSize = zero;
  let sumUlpSquare = zero;
  let mostScaled = zero;
  let mostUlp = zero;
  let least = infinity;
  let most = f64x2.neg(infinity);
  let notCorrect = i64x2.splat(0);
  let differing = i64x2.splat(0);
  let zeros = i64x2.splat(0);
  let belowNormal = i64x2.splat(0);
  let nonFinite = i64x2.splat(0);
  let nonFiniteScaled = i64x2.splat(0);
  let nonFiniteUlp = i64x2.splat(0);
  const low = record + histogramOffset;
  const high = low + ((<usize>histogramBins) << 2);
  const lowest = i32x4.splat(firstBin - 1);
  const highest = i32x4.splat(firstBin + histogramBins - 2);
  for (let i = 0; i < count; i += 2) {
    const o: usize = (<usize>i) << 3;
    const full = i + 1 < count;
    const lanes = full ? allLanes() : firstLane();
    const y = v128.load(z + o);
    const a = v128.and(v128.load(scale + o), lanes);
    const b = v128.and(v128.load(ulps + o), lanes);
    const size = f64x2.abs(y);
    const finite = f64x2.lt(size, infinity);
    // Where nothing is measured the reference may be infinite.
    const inRange = f64x2.ne(b, zero);
    const d = v128.and(f64x2.sub(y, v128.load(reference + o)), v128.and(finite, inRange));
    const scaled = f64x2.mul(d, a);
    const ulp = f64x2.mul(d, b);
    const scaledSize = f64x2.abs(scaled);
    const ulpSize = f64x2.abs(ulp);
    sumScaled = f64x2.add(sumScaled, scaled);
    sumScaledSize = f64x2.add(sumScaledSize, scaledSize);
    sumScaledSquare = f64x2.add(sumScaledSquare, f64x2.mul(scaled, scaled));
    sumUlp = f64x2.add(sumUlp, ulp);
    sumUlpSize = f64x2.add(sumUlpSize, ulpSize);
    sumUlpSquare = f64x2.add(sumUlpSquare, f64x2.mul(ulp, ulp));
    const isMeasured = v128.and(f64x2.ne(a, zero), finite);
    least = v128.bitselect(f64x2.pmin(least, scaled), least, isMeasured);
    most = v128.bitselect(f64x2.pmax(most, scaled), most, isMeasured);
    mostScaled = f64x2.pmax(mostScaled, scaledSize);
    mostUlp = f64x2.pmax(mostUlp, ulpSize);
    // The exponent field and the first fraction bit of the size choose the bin.
    const bin = i32x4.sub(
      i32x4.min_s(i32x4.max_s(i64x2.shr_u(ulpSize, 51), lowest), highest),
      lowest,
    );
    const lowBin = low + ((<usize>i32x4.extract_lane(bin, 0)) << 2);
    store<i32>(lowBin, load<i32>(lowBin) + repeat);
    if (full) {
      const highBin = high + ((<usize>i32x4.extract_lane(bin, 2)) << 2);
      store<i32>(highBin, load<i32>(highBin) + repeat);
    }
    notCorrect = i64x2.sub(notCorrect, v128.and(f64x2.ne(y, v128.load(rounded + o)), lanes));
    differing = i64x2.sub(differing, v128.and(f64x2.ne(y, v128.load(baseline + o)), lanes));
    zeros = i64x2.sub(zeros, v128.and(f64x2.eq(y, zero), lanes));
    belowNormal = i64x2.sub(belowNormal, v128.and(f64x2.lt(size, normal), lanes));
    if (!i64x2.all_true(finite)) {
      const lost = v128.andnot(lanes, finite);
      nonFinite = i64x2.sub(nonFinite, lost);
      nonFiniteScaled = i64x2.sub(nonFiniteScaled, v128.and(lost, f64x2.ne(a, zero)));
      nonFiniteUlp = i64x2.sub(nonFiniteUlp, v128.and(lost, inRange));
    }
  }
  const times = <f64>repeat;
  addLanes(record, sumScaled, times);
  addLanes(record + 8, sumScaledSize, times);
  addLanes(record + 16, sumScaledSquare, times);
  addLanes(record + 24, sumUlp, times);
  addLanes(record + 32, sumUlpSize, times);
  addLanes(record + 40, sumUlpSquare, times);
  const counts = record + countsOffset;
  addCount(counts, notCorrect, times);
  addCount(counts + 8, differing, times);
  addCount(counts + 16, zeros, times);
  addCount(counts + 24, i64x2.sub(belowNormal, zeros), times);
  addCount(counts + 32, nonFinite, times);
  addCount(counts + 40, nonFiniteScaled, times);
  addCount(counts + 48, nonFiniteUlp, times);
  const largestScaled = record + largestScaledOffset;
  if (larger(mostScaled) > smallestOf(largestScaled))
    insertErrors(z, reference, scale, count, repeat, ordinal, largestScaled);
  const largestUlp = record + largestUlpOffset;
  if (larger(mostUlp) > smallestOf(largestUlp))
    insertErrors(z, reference, ulps, count, repeat, ordinal, largestUlp);
  const extent = record + extentOffset;
  store<f64>(extent, min<f64>(f64x2.extract_lane(least, 0), f64x2.extract_lane(least, 1)));
  store<f64>(extent, max<f64>(f64x2.extract_lane(most, 0), f64x2.extract_lane(most, 1)), 8);
}
