// AssemblyScript: the sums of textbook attention in fp64, two lanes at a time. Each sum has the additions of
// ../yardstick-attention.ts in their order, so that its bits do not depend on how many are made at once.

/** Multiplies numbers by a factor, in place. */
export function multiplyNumbers(at: usize, count: i32, factor: f64): void {
  const by = f64x2.splat(factor);
  const end = at + ((<usize>count) << 3);
  let next = at;
  for (; next + 16 <= end; next += 16) v128.store(next, f64x2.mul(v128.load(next), by));
  if (next < end) store<f64>(next, load<f64>(next) * factor);
}

/** Products of a row of Q with `keys` rows of K: sums of every fourth product, which are added as (s0 + s1) + (s2 + s3). */
export function scoreRow(q: usize, k: usize, scores: usize, keys: i32, dim: i32): void {
  const rowBytes = (<usize>dim) << 3;
  const quads = (<usize>(dim & ~3)) << 3;
  let j = 0;
  for (; j + 3 < keys; j += 4) {
    const k0 = k + <usize>j * rowBytes;
    const k1 = k0 + rowBytes;
    const k2 = k1 + rowBytes;
    const k3 = k2 + rowBytes;
    let a0 = f64x2.splat(0);
    let b0 = f64x2.splat(0);
    let a1 = f64x2.splat(0);
    let b1 = f64x2.splat(0);
    let a2 = f64x2.splat(0);
    let b2 = f64x2.splat(0);
    let a3 = f64x2.splat(0);
    let b3 = f64x2.splat(0);
    for (let at: usize = 0; at < quads; at += 32) {
      const x = v128.load(q + at);
      const y = v128.load(q + at, 16);
      a0 = f64x2.add(a0, f64x2.mul(x, v128.load(k0 + at)));
      b0 = f64x2.add(b0, f64x2.mul(y, v128.load(k0 + at, 16)));
      a1 = f64x2.add(a1, f64x2.mul(x, v128.load(k1 + at)));
      b1 = f64x2.add(b1, f64x2.mul(y, v128.load(k1 + at, 16)));
      a2 = f64x2.add(a2, f64x2.mul(x, v128.load(k2 + at)));
      b2 = f64x2.add(b2, f64x2.mul(y, v128.load(k2 + at, 16)));
      a3 = f64x2.add(a3, f64x2.mul(x, v128.load(k3 + at)));
      b3 = f64x2.add(b3, f64x2.mul(y, v128.load(k3 + at, 16)));
    }
    const out = scores + ((<usize>j) << 3);
    store<f64>(out, sumOf(a0, b0, q, k0, quads, rowBytes));
    store<f64>(out, sumOf(a1, b1, q, k1, quads, rowBytes), 8);
    store<f64>(out, sumOf(a2, b2, q, k2, quads, rowBytes), 16);
    store<f64>(out, sumOf(a3, b3, q, k3, quads, rowBytes), 24);
  }
  for (; j < keys; j++) {
    const row = k + <usize>j * rowBytes;
    let a = f64x2.splat(0);
    let b = f64x2.splat(0);
    for (let at: usize = 0; at < quads; at += 32) {
      a = f64x2.add(a, f64x2.mul(v128.load(q + at), v128.load(row + at)));
      b = f64x2.add(b, f64x2.mul(v128.load(q + at, 16), v128.load(row + at, 16)));
    }
    store<f64>(scores + ((<usize>j) << 3), sumOf(a, b, q, row, quads, rowBytes));
  }
}

/** The four sums as one; the products that are left join the first before. */
// @inline
function sumOf(a: v128, b: v128, q: usize, k: usize, from: usize, to: usize): f64 {
  let first = f64x2.extract_lane(a, 0);
  for (let at = from; at < to; at += 8) first += load<f64>(q + at) * load<f64>(k + at);
  const rest = f64x2.extract_lane(b, 0) + f64x2.extract_lane(b, 1);
  return first + f64x2.extract_lane(a, 1) + rest;
}

// @inline
function product(weight: usize, offset: usize, value: usize): v128 {
  return f64x2.mul(v128.load64_splat(weight + offset), v128.load(value));
}

/** Four weights times a pair of columns of four rows. */
// @inline
function fourProducts(weights: usize, value: usize, rowBytes: usize): v128 {
  const third = value + 2 * rowBytes;
  return f64x2.add(
    f64x2.add(product(weights, 0, value), product(weights, 8, value + rowBytes)),
    f64x2.add(product(weights, 16, third), product(weights, 24, third + rowBytes)),
  );
}

/** row += Σ_j weights[j] · values[j], four rows of values at a time: row + ((p0 + p1) + (p2 + p3)). */
export function addWeightedRows(
  row: usize,
  weights: usize,
  values: usize,
  keys: i32,
  dim: i32,
): void {
  const rowBytes = (<usize>dim) << 3;
  const quads = keys & ~3;
  let c: usize = 0;
  for (; c + 64 <= rowBytes; c += 64) {
    let a = v128.load(row + c);
    let b = v128.load(row + c, 16);
    let d = v128.load(row + c, 32);
    let e = v128.load(row + c, 48);
    let value = values + c;
    for (let j = 0; j < quads; j += 4, value += 4 * rowBytes) {
      const w = weights + ((<usize>j) << 3);
      a = f64x2.add(a, fourProducts(w, value, rowBytes));
      b = f64x2.add(b, fourProducts(w, value + 16, rowBytes));
      d = f64x2.add(d, fourProducts(w, value + 32, rowBytes));
      e = f64x2.add(e, fourProducts(w, value + 48, rowBytes));
    }
    for (let j = quads; j < keys; j++, value += rowBytes) {
      const w = weights + ((<usize>j) << 3);
      a = f64x2.add(a, product(w, 0, value));
      b = f64x2.add(b, product(w, 0, value + 16));
      d = f64x2.add(d, product(w, 0, value + 32));
      e = f64x2.add(e, product(w, 0, value + 48));
    }
    v128.store(row + c, a);
    v128.store(row + c, b, 16);
    v128.store(row + c, d, 32);
    v128.store(row + c, e, 48);
  }
  for (; c < rowBytes; c += 8) {
    let sum = load<f64>(row + c);
    let value = values + c;
    for (let j = 0; j < quads; j += 4, value += 4 * rowBytes) {
      const w = weights + ((<usize>j) << 3);
      const third = value + 2 * rowBytes;
      sum +=
        load<f64>(w) * load<f64>(value) +
        load<f64>(w, 8) * load<f64>(value + rowBytes) +
        (load<f64>(w, 16) * load<f64>(third) + load<f64>(w, 24) * load<f64>(third + rowBytes));
    }
    for (let j = quads; j < keys; j++, value += rowBytes)
      sum += load<f64>(weights + ((<usize>j) << 3)) * load<f64>(value);
    store<f64>(row + c, sum);
  }
}

/** Rounds numbers to fp32, to nearest even, in place. */
export function roundToFloat32(at: usize, count: i32): void {
  const end = at + ((<usize>count) << 3);
  for (; at + 16 <= end; at += 16)
    v128.store(at, f64x2.promote_low_f32x4(f32x4.demote_f64x2_zero(v128.load(at))));
  if (at < end) store<f64>(at, <f64>(<f32>load<f64>(at)));
}

/** A format that numbers are rounded to, to nearest even; beyond its largest number they become infinite. */
@unmanaged
export class Format {
  smallestNormal: f64;
  ulpOfOne: f64;
  maxFinite: f64;
}

/** The distance of the numbers of a format around |x|, up to a power of two that nothing in use reaches. */
// @inline
function quantumOf(x: v128, smallest: v128, ulp: v128): v128 {
  const power = v128.and(x, i64x2.splat(0x7ff0000000000000));
  const clamped = f64x2.min(f64x2.max(power, smallest), f64x2.splat(2.037035976334486e90));
  return f64x2.mul(clamped, ulp);
}

/** x rounded to a multiple of the quantum: 1.5·2^52 of them are added, which leaves no bits below. */
// @inline
function roundedTo(x: v128, quantum: v128): v128 {
  const shifter = f64x2.mul(quantum, f64x2.splat(6755399441055744.0));
  return f64x2.sub(f64x2.add(x, shifter), shifter);
}

/** Rounds `count` numbers to a format in place; a number behind an odd count is rounded too. */
export function roundNumbers(at: usize, count: i32, format: Format): void {
  const smallest = f64x2.splat(format.smallestNormal);
  const ulp = f64x2.splat(format.ulpOfOne);
  const most = f64x2.splat(format.maxFinite);
  const sign = i64x2.splat(<i64>0x8000000000000000);
  const end = at + ((<usize>count) << 3);
  for (; at < end; at += 16) {
    const x = v128.load(at);
    const size = v128.andnot(x, sign);
    const rounded = roundedTo(size, quantumOf(size, smallest, ulp));
    const finite = v128.bitselect(f64x2.splat(Infinity), rounded, f64x2.gt(rounded, most));
    v128.store(at, v128.or(finite, v128.and(x, sign)));
  }
}

/**
 * e^x for x ≤ 0, within 2^-46 of it; 0 below about 2^-1000: x = n·ln 2 + r, and Taylor's series of e^r to r^13, |r| < 0.35.
 */
// @inline
function exponential(x: v128): v128 {
  const y = f64x2.max(x, f64x2.splat(-1000));
  const n = f64x2.nearest(f64x2.mul(y, f64x2.splat(1.4426950408889634)));
  // ln 2 = high + low, high of 32 bits so that the product is exact.
  const high = f64x2.sub(y, f64x2.mul(n, f64x2.splat(0.6931471803691238)));
  const r = f64x2.sub(high, f64x2.mul(n, f64x2.splat(1.9082149292705877e-10)));
  let sum = f64x2.splat(1.0 / 6227020800.0);
  sum = f64x2.add(f64x2.mul(sum, r), f64x2.splat(1.0 / 479001600.0));
  sum = f64x2.add(f64x2.mul(sum, r), f64x2.splat(1.0 / 39916800.0));
  sum = f64x2.add(f64x2.mul(sum, r), f64x2.splat(1.0 / 3628800.0));
  sum = f64x2.add(f64x2.mul(sum, r), f64x2.splat(1.0 / 362880.0));
  sum = f64x2.add(f64x2.mul(sum, r), f64x2.splat(1.0 / 40320.0));
  sum = f64x2.add(f64x2.mul(sum, r), f64x2.splat(1.0 / 5040.0));
  sum = f64x2.add(f64x2.mul(sum, r), f64x2.splat(1.0 / 720.0));
  sum = f64x2.add(f64x2.mul(sum, r), f64x2.splat(1.0 / 120.0));
  sum = f64x2.add(f64x2.mul(sum, r), f64x2.splat(1.0 / 24.0));
  sum = f64x2.add(f64x2.mul(sum, r), f64x2.splat(1.0 / 6.0));
  sum = f64x2.add(f64x2.mul(sum, r), f64x2.splat(0.5));
  sum = f64x2.add(f64x2.mul(sum, r), f64x2.splat(1));
  sum = f64x2.add(f64x2.mul(sum, r), f64x2.splat(1));
  // The integer in the low bits of a large number becomes an exponent.
  const raised = f64x2.add(f64x2.max(n, f64x2.splat(-1000)), f64x2.splat(6755399441055744.0));
  const power = i64x2.add(sum, i64x2.shl(raised, 52));
  return v128.and(power, f64x2.ge(n, f64x2.splat(-1000)));
}

/**
 * Scores of a row to its weights, rounded to a format, in place: e^(score − largest) / Σ, the sink in Σ. Returns whether it is sure
 * that each is the rounding of the weight that any other good exponential gives; else the scores are left as they are.
 * @param weights room for as many numbers as scores, and one more
 */
export function roundedSoftmax(
  scores: usize,
  weights: usize,
  count: i32,
  sink: f64,
  format: Format,
): bool {
  if (!(sink < Infinity)) return false;
  let largest = sink;
  for (let j = 0; j < count; j++) {
    const score = load<f64>(scores + ((<usize>j) << 3));
    if (!(score < Infinity)) return false;
    largest = max<f64>(largest, score);
  }
  if (largest === -Infinity) return false;
  const origin = f64x2.splat(largest);
  const pairs = (<usize>(count & ~1)) << 3;
  let sums = f64x2.splat(0);
  let at: usize = 0;
  for (; at < pairs; at += 16) {
    const weight = exponential(f64x2.sub(v128.load(scores + at), origin));
    v128.store(weights + at, weight);
    sums = f64x2.add(sums, weight);
  }
  let total = f64x2.extract_lane(sums, 0) + f64x2.extract_lane(sums, 1);
  if ((count & 1) !== 0) {
    const weight = exponential(f64x2.splat(load<f64>(scores + at) - largest));
    v128.store(weights + at, weight);
    total += f64x2.extract_lane(weight, 0);
  }
  if (sink !== -Infinity) total += f64x2.extract_lane(exponential(f64x2.splat(sink - largest)), 0);
  const smallest = f64x2.splat(format.smallestNormal);
  const ulp = f64x2.splat(format.ulpOfOne);
  const divisor = f64x2.splat(total);
  // Both exponentials, and the additions of either sum.
  const margin = f64x2.splat((<f64>count + 4096) * 4.440892098500626e-16);
  const half = f64x2.splat(0.5);
  let isOpen = i64x2.splat(0);
  const end = (<usize>count) << 3;
  for (at = 0; at < end; at += 16) {
    const weight = f64x2.div(v128.load(weights + at), divisor);
    const quantum = quantumOf(weight, smallest, ulp);
    const rounded = roundedTo(weight, quantum);
    const reach = f64x2.add(f64x2.abs(f64x2.sub(weight, rounded)), f64x2.mul(weight, margin));
    isOpen = v128.or(isOpen, f64x2.ge(reach, f64x2.mul(quantum, half)));
    v128.store(weights + at, rounded);
  }
  if (v128.any_true(isOpen)) return false;
  memory.copy(scores, weights, end);
  return true;
}
