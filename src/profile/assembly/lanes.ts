// AssemblyScript: what vectors of two fp64 or i64 lanes need, and how they are rounded to a format.

// @inline
export function allLanes(): v128 {
  return i64x2.splat(-1);
}

/** The first lane only. */
// @inline
export function firstLane(): v128 {
  return i64x2(-1, 0);
}

// @inline
export function larger(x: v128): f64 {
  return max<f64>(f64x2.extract_lane(x, 0), f64x2.extract_lane(x, 1));
}

// @inline
export function add(address: usize, value: f64): void {
  store<f64>(address, load<f64>(address) + value);
}

// @inline
export function addLanes(address: usize, lanes: v128, repeat: f64): void {
  add(address, (f64x2.extract_lane(lanes, 0) + f64x2.extract_lane(lanes, 1)) * repeat);
}

// @inline
export function addCount(address: usize, lanes: v128, repeat: f64): void {
  add(address, <f64>(i64x2.extract_lane(lanes, 0) + i64x2.extract_lane(lanes, 1)) * repeat);
}

// Rounding to a format is adding and subtracting. A format is five fp64 numbers: its smallest normal
// number, 1.5·2^(53 − p), 2^(p − 1), its largest finite number, and what replaces a magnitude beyond
// that.

const exponentMask: i64 = 0x7ff0000000000000;
/** The largest power of two that a quantum is taken at: with an infinity's the sum would be NaN. */
const largestPower: f64 = 1.7014118346046923e38;

/** 2^max(e, smallest normal exponent) for 2^e ≤ |x| < 2^(e + 1). */
// @inline
export function binade(x: v128, smallestNormal: v128): v128 {
  const power = f64x2.pmax(v128.and(x, i64x2.splat(exponentMask)), smallestNormal);
  return f64x2.pmin(power, f64x2.splat(largestPower));
}

/** x to a multiple of the format's quantum, ties to even: the sum has exactly the quantum as its ulp. */
// @inline
export function roundToQuantum(x: v128, power: v128, magic: v128): v128 {
  const shift = f64x2.mul(power, magic);
  return f64x2.sub(f64x2.add(x, shift), shift);
}

/** Replaces magnitudes beyond the largest finite number, with their sign. */
// @inline
export function overflow(x: v128, largest: v128, beyond: v128): v128 {
  const replaced = v128.or(beyond, v128.andnot(x, i64x2.splat(0x7fffffffffffffff)));
  return v128.bitselect(replaced, x, f64x2.gt(f64x2.abs(x), largest));
}

/** 2^(p − 1) of fp32: rounding an fp32 result to it changes nothing. */
const quantaOfFloat32: f64 = 8388608;

/** Rounds the fp32 results to the format. Defined by `roundTo` of ../round-by-adding.ts. */
export function roundResults(results: usize, rounded: usize, count: i32, format: usize): void {
  if (load<f64>(format, 16) === quantaOfFloat32) {
    for (let i: usize = 0; i < <usize>count; i += 2) {
      const pair = v128.load64_zero(results + (i << 2));
      v128.store(rounded + (i << 3), f64x2.promote_low_f32x4(pair));
    }
    return;
  }
  const smallestNormal = v128.load64_splat(format);
  const magic = v128.load64_splat(format, 8);
  const largest = v128.load64_splat(format, 24);
  const beyond = v128.load64_splat(format, 32);
  for (let i: usize = 0; i < <usize>count; i += 2) {
    const y = f64x2.promote_low_f32x4(v128.load64_zero(results + (i << 2)));
    const z = roundToQuantum(y, binade(y, smallestNormal), magic);
    v128.store(rounded + (i << 3), overflow(z, largest, beyond));
  }
}
