// AssemblyScript: what is measured against the fp64 references of a segment.
import { allLanes, binade, firstLane, overflow, roundToQuantum } from './lanes';

/** Whether all `count` ≥ 1 numbers are the same: `new Set(values).size === 1`. */
export function isConstant(values: usize, count: i32): bool {
  const first = v128.load64_splat(values);
  let same = allLanes();
  const pairs: usize = (<usize>(count & ~1)) << 3;
  for (let o: usize = 0; o < pairs; o += 16)
    same = v128.and(same, f64x2.eq(v128.load(values + o), first));
  if (count & 1)
    same = v128.and(same, f64x2.eq(v128.load64_splat(values + ((<usize>(count - 1)) << 3)), first));
  return i64x2.all_true(same);
}

/** What `prepare` works on: addresses, but for the last two. */
@unmanaged
export class Preparation {
  /** fp64: the references; what it fills. */
  reference: usize;
  scale: usize;
  ulps: usize;
  rounded: usize;
  /** i32: indices; two counts. */
  undecided: usize;
  measured: usize;
  /** Five fp64 numbers: see lanes.ts. */
  format: usize;
  /** Whether errors are absolute. */
  absolute: bool;
  /** Bound on the relative error of the references. */
  margin: f64;
}

/**
 * Scales of the errors and correctly rounded values of the references. Writes the indices of those
 * that the margin leaves undecided and returns how many they are; `measured` gets how
 * many scaled and how many ulp errors are measured. Defined by `scalesFor` of test/profile/accumulate-definition.ts.
 */
export function prepare(work: Preparation, count: i32): i32 {
  const reference = work.reference;
  const scale = work.scale;
  const ulps = work.ulps;
  const rounded = work.rounded;
  const undecided = work.undecided;
  const measured = work.measured;
  const format = work.format;
  const absolute = work.absolute;
  const margin = work.margin;
  const smallestNormal = v128.load64_splat(format);
  const magic = v128.load64_splat(format, 8);
  const perUlp = v128.load64_splat(format, 16);
  const largest = v128.load64_splat(format, 24);
  const beyond = v128.load64_splat(format, 32);
  const width = f64x2.splat(margin);
  // Not a product with 0, which is no number for an infinite reference.
  const isExact = margin === 0;
  const zero = f64x2.splat(0);
  const one = f64x2.splat(1);
  let scaledCount = i64x2.splat(0);
  let ulpCount = i64x2.splat(0);
  let left = 0;
  for (let i = 0; i < count; i += 2) {
    const o: usize = (<usize>i) << 3;
    const lanes = i + 1 < count ? allLanes() : firstLane();
    const t = v128.load(reference + o);
    const size = f64x2.abs(t);
    const power = binade(t, smallestNormal);
    const radius = isExact ? zero : f64x2.mul(t, width);
    const low = roundToQuantum(f64x2.sub(t, radius), power, magic);
    const high = roundToQuantum(f64x2.add(t, radius), power, magic);
    const z = overflow(low, largest, beyond);
    v128.store(rounded + o, z);
    const differ = v128.and(f64x2.ne(z, overflow(high, largest, beyond)), lanes);
    if (v128.any_true(differ)) {
      if (i64x2.extract_lane(differ, 0)) {
        store<i32>(undecided + ((<usize>left) << 2), i);
        left++;
      }
      if (i64x2.extract_lane(differ, 1)) {
        store<i32>(undecided + ((<usize>left) << 2), i + 1);
        left++;
      }
    }
    const inRange = v128.and(f64x2.le(size, largest), lanes);
    const isScaled = absolute ? inRange : v128.and(inRange, f64x2.ge(size, smallestNormal));
    v128.store(scale + o, v128.and(absolute ? one : f64x2.div(one, t), isScaled));
    v128.store(ulps + o, v128.and(f64x2.mul(f64x2.div(one, power), perUlp), inRange));
    scaledCount = i64x2.sub(scaledCount, isScaled);
    ulpCount = i64x2.sub(ulpCount, inRange);
  }
  store<i32>(
    measured,
    <i32>(i64x2.extract_lane(scaledCount, 0) + i64x2.extract_lane(scaledCount, 1)),
  );
  store<i32>(measured, <i32>(i64x2.extract_lane(ulpCount, 0) + i64x2.extract_lane(ulpCount, 1)), 4);
  return left;
}
