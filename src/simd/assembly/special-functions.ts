// AssemblyScript: NVIDIA's special function unit on arrays of bit patterns. What the functions compute
// and why is written in src/hardware/mufu, whose plain functions of the same names define these; here
// they are only fast.
//
// A segment is 16 bytes: at 0 the constant term as an i64 (c0 times its weight, plus the rounding
// constant), at 8 c1 and at 12 c2 times its weight, as i32. `squares` holds the unit's truncated square
// of every 17-bit number as u16.

const infinityBits: u32 = 0x7f800000;
const canonicalNan: u32 = 0x7fffffff;
const oneBits: u32 = 0x3f800000;
const hiddenBit: u32 = 0x00800000;
const signBit: u32 = 0x80000000;
const fractionMask: u32 = 0x7fffff;
/** 2^126: above it reciprocals are below 2^-126. */
const largeBits: u32 = 0x7e800000;

/** The interpolated sum of a segment at x, whose squarer takes `x << squareShift`. */
// @inline
function interpolate(segments: usize, squares: usize, index: u32, x: u32, squareShift: u32): i64 {
  const segment = segments + ((<usize>index) << 4);
  const square = <i64>load<u16>(squares + ((<usize>(x << squareShift)) << 1));
  return (
    load<i64>(segment) + <i64>load<i32>(segment, 8) * <i64>x + <i64>load<i32>(segment, 12) * square
  );
}

/** ±significand·2^(exponent − 23) for a significand from 2^23 to 2^24; flushes and overflows. */
// @inline
function pack(sign: u32, exponent: i32, significand: u32): u32 {
  if (exponent > 127) return sign | infinityBits;
  const magnitude = ((exponent + 126) << 23) + <i32>significand;
  return magnitude < <i32>hiddenBit ? sign : sign | (<u32>magnitude);
}

/** ±magnitude·2^unitExponent truncated to 24 bits; magnitude from 1. */
// @inline
function truncate(sign: u32, magnitude: i64, unitExponent: i32): u32 {
  const length = 64 - <i32>clz(magnitude);
  const drop = length - 24;
  const significand = drop > 0 ? magnitude >> drop : magnitude << -drop;
  return pack(sign, unitExponent + length - 1, <u32>significand);
}

/** 2^x of one fp32 number, as bits: `exp2ApproxFtz`. */
// @inline
export function exp2Ftz(bits: u32, segments: usize, squares: usize, shift: i64): u32 {
  const negative = bits >> 31;
  const magnitude = bits & 0x7fffffff;
  const exponent = <i32>(magnitude >> 23) - 127;
  if (exponent >= 7) {
    if (magnitude > infinityBits) return canonicalNan;
    return negative ? 0 : infinityBits;
  }
  if (exponent < -23) return oneBits;
  const significand = (magnitude & fractionMask) | hiddenBit;
  const fixed = exponent >= 0 ? significand << exponent : significand >> -exponent;
  let integer = <i32>(fixed >> 23);
  let fraction = fixed & fractionMask;
  // One's complement: of the whole fixed-point number, except where its fraction is zero.
  if (negative) {
    integer = fraction ? ~integer : -integer;
    fraction = fraction ? fraction ^ fractionMask : 0;
  }
  const sum = interpolate(segments, squares, fraction >> 17, fraction & 0x1ffff, 0);
  return pack(0, integer, <u32>(sum >> shift));
}

/** Four of `exp2Ftz`. */
// @inline
export function exp2Ftz4(x: v128, segments: usize, squares: usize, shift: i64): v128 {
  let p = i32x4.splat(exp2Ftz(i32x4.extract_lane(x, 0), segments, squares, shift));
  p = i32x4.replace_lane(p, 1, exp2Ftz(i32x4.extract_lane(x, 1), segments, squares, shift));
  p = i32x4.replace_lane(p, 2, exp2Ftz(i32x4.extract_lane(x, 2), segments, squares, shift));
  return i32x4.replace_lane(p, 3, exp2Ftz(i32x4.extract_lane(x, 3), segments, squares, shift));
}

/** Defined by `exp2ApproxFtz` of src/hardware/mufu/ex2.ts. */
export function exp2ApproxFtz(
  inputs: usize,
  results: usize,
  count: i32,
  segments: usize,
  squares: usize,
  shift: i32,
): void {
  for (let i: usize = 0; i < (<usize>count) << 2; i += 4)
    store<u32>(results + i, exp2Ftz(load<u32>(inputs + i), segments, squares, shift));
}

const minus126Bits: u32 = 0xc2fc0000;
const minusInfinityBits: u32 = 0xff800000;

/** r² rounded to nearest even in units of 2^-149, for the bits of 0 ≤ r ≤ 2^-63. */
// @inline
function squareTiny(bits: u32): u32 {
  if (bits === 0) return 0;
  const significand = <u64>((bits & fractionMask) | hiddenBit);
  const square = significand * significand;
  // (significand · 2^(field − 150))² in units of 2^-149.
  const drop = <u64>(151 - 2 * <i32>(bits >> 23));
  if (drop > 60) return 0;
  const below = square >> drop;
  const rest = square & (((<u64>1) << drop) - 1);
  const half = (<u64>1) << (drop - 1);
  return <u32>(rest > half || (rest === half && below & 1) ? below + 1 : below);
}

/** Defined by `exp2Approx` of src/hardware/mufu/ex2.ts. */
export function exp2Approx(
  inputs: usize,
  results: usize,
  count: i32,
  segments: usize,
  squares: usize,
  shift: i32,
): void {
  for (let i: usize = 0; i < (<usize>count) << 2; i += 4) {
    const bits = load<u32>(inputs + i);
    store<u32>(
      results + i,
      bits > minus126Bits && bits < minusInfinityBits
        ? squareTiny(exp2Ftz(bits - hiddenBit, segments, squares, shift))
        : exp2Ftz(bits, segments, squares, shift),
    );
  }
}

// @inline
export function reciprocalFtz(bits: u32, segments: usize, squares: usize, shift: i64): u32 {
  const sign = bits & signBit;
  const magnitude = bits & 0x7fffffff;
  if (magnitude - hiddenBit >= infinityBits - hiddenBit) {
    if (magnitude > infinityBits) return canonicalNan;
    return magnitude === infinityBits ? sign : sign | infinityBits;
  }
  const exponent = <i32>(magnitude >> 23) - 127;
  const fraction = magnitude & fractionMask;
  const sum = interpolate(segments, squares, fraction >> 16, fraction & 0xffff, 1);
  return pack(sign, -exponent - 1, <u32>(sum >> shift));
}

/** Defined by `rcpApproxFtz` of src/hardware/mufu/rcp.ts. */
export function rcpApproxFtz(
  inputs: usize,
  results: usize,
  count: i32,
  segments: usize,
  squares: usize,
  shift: i32,
): void {
  for (let i: usize = 0; i < (<usize>count) << 2; i += 4)
    store<u32>(results + i, reciprocalFtz(load<u32>(inputs + i), segments, squares, shift));
}

const logarithmGridBits = 36;

// @inline
export function logarithm2Ftz(bits: u32, segments: usize, squares: usize, shift: i64): u32 {
  const magnitude = bits & 0x7fffffff;
  if (magnitude > infinityBits) return canonicalNan;
  if (magnitude < hiddenBit) return signBit | infinityBits;
  if (bits >> 31) return canonicalNan;
  if (magnitude === infinityBits) return infinityBits;
  if (magnitude === oneBits) return 0;
  const exponent = <i32>(magnitude >> 23) - 127;
  const fraction = magnitude & fractionMask;
  const sum = interpolate(segments, squares, fraction >> 17, fraction & 0x1ffff, 0);
  const fixed = ((<i64>exponent) << logarithmGridBits) + (sum >> shift);
  return fixed < 0
    ? truncate(signBit, ~fixed, -logarithmGridBits)
    : truncate(0, fixed, -logarithmGridBits);
}

/** Defined by `lg2ApproxFtz` of src/hardware/mufu/lg2.ts. */
export function lg2ApproxFtz(
  inputs: usize,
  results: usize,
  count: i32,
  segments: usize,
  squares: usize,
  shift: i32,
): void {
  for (let i: usize = 0; i < (<usize>count) << 2; i += 4)
    store<u32>(results + i, logarithm2Ftz(load<u32>(inputs + i), segments, squares, shift));
}

// @inline
function reciprocalSquareRootFtz(bits: u32, segments: usize, squares: usize, shift: i64): u32 {
  const magnitude = bits & 0x7fffffff;
  if (magnitude > infinityBits) return canonicalNan;
  if (magnitude < hiddenBit) return (bits & signBit) | infinityBits;
  if (bits >> 31) return canonicalNan;
  if (magnitude === infinityBits) return 0;
  const exponent = <i32>(magnitude >> 23) - 127;
  const halfExponent = exponent >> 1;
  const position = ((<u32>(exponent & 1)) << 23) | (magnitude & fractionMask);
  if (position === 0) return pack(0, -halfExponent, hiddenBit);
  const sum = interpolate(segments, squares, position >> 17, position & 0x1ffff, 0);
  return pack(0, -halfExponent - 1, <u32>(sum >> shift));
}

/** Defined by `rsqrtApproxFtz` of src/hardware/mufu/rsqrt.ts. */
export function rsqrtApproxFtz(
  inputs: usize,
  results: usize,
  count: i32,
  segments: usize,
  squares: usize,
  shift: i32,
): void {
  for (let i: usize = 0; i < (<usize>count) << 2; i += 4)
    store<u32>(
      results + i,
      reciprocalSquareRootFtz(load<u32>(inputs + i), segments, squares, shift),
    );
}

// @inline
function squareRootFtz(bits: u32, segments: usize, squares: usize, shift: i64): u32 {
  const magnitude = bits & 0x7fffffff;
  if (magnitude > infinityBits) return canonicalNan;
  if (magnitude < hiddenBit) return bits & signBit;
  if (bits >> 31) return canonicalNan;
  if (magnitude === infinityBits) return infinityBits;
  const exponent = <i32>(magnitude >> 23) - 127;
  const position = ((<u32>(exponent & 1)) << 23) | (magnitude & fractionMask);
  const sum = interpolate(segments, squares, position >> 17, position & 0x1ffff, 0);
  return pack(0, exponent >> 1, <u32>(sum >> shift));
}

/** Defined by `sqrtApproxFtz` of src/hardware/mufu/sqrt.ts. */
export function sqrtApproxFtz(
  inputs: usize,
  results: usize,
  count: i32,
  segments: usize,
  squares: usize,
  shift: i32,
): void {
  for (let i: usize = 0; i < (<usize>count) << 2; i += 4)
    store<u32>(results + i, squareRootFtz(load<u32>(inputs + i), segments, squares, shift));
}

// Without .ftz: subnormal inputs, and of the reciprocal results, are scaled to normal ones and back.

// @inline
function isSubnormal(bits: u32): bool {
  return (bits & 0x7fffffff) - 1 < hiddenBit - 1;
}

// @inline
function scaled(bits: u32, factor: f32): u32 {
  return reinterpret<u32>(reinterpret<f32>(bits) * factor);
}

// @inline
function reciprocal(bits: u32, segments: usize, squares: usize, shift: i64): u32 {
  const magnitude = bits & 0x7fffffff;
  const isLarge = magnitude - (largeBits + 1) < infinityBits - (largeBits + 1);
  const factor: f32 = isSubnormal(bits) ? 16777216 : isLarge ? 0.25 : 1;
  if (factor === 1) return reciprocalFtz(bits, segments, squares, shift);
  return scaled(reciprocalFtz(scaled(bits, factor), segments, squares, shift), factor);
}

// @inline
function logarithm2(bits: u32, segments: usize, squares: usize, shift: i64): u32 {
  if (!isSubnormal(bits)) return logarithm2Ftz(bits, segments, squares, shift);
  if (bits >> 31) return canonicalNan;
  const logarithm = logarithm2Ftz(scaled(bits, 16777216), segments, squares, shift);
  return reinterpret<u32>(reinterpret<f32>(logarithm) - 24);
}

// @inline
function reciprocalSquareRoot(bits: u32, segments: usize, squares: usize, shift: i64): u32 {
  if (!isSubnormal(bits)) return reciprocalSquareRootFtz(bits, segments, squares, shift);
  return bits >> 31
    ? canonicalNan
    : scaled(reciprocalSquareRootFtz(scaled(bits, 16777216), segments, squares, shift), 4096);
}

// @inline
function squareRoot(bits: u32, segments: usize, squares: usize, shift: i64): u32 {
  if (!isSubnormal(bits)) return squareRootFtz(bits, segments, squares, shift);
  return bits >> 31
    ? canonicalNan
    : scaled(squareRootFtz(scaled(bits, 16777216), segments, squares, shift), 1.0 / 4096);
}

/** Defined by `rcpApprox` of src/hardware/mufu/rcp.ts. */
export function rcpApprox(
  inputs: usize,
  results: usize,
  count: i32,
  segments: usize,
  squares: usize,
  shift: i32,
): void {
  for (let i: usize = 0; i < (<usize>count) << 2; i += 4)
    store<u32>(results + i, reciprocal(load<u32>(inputs + i), segments, squares, shift));
}

/** Defined by `lg2Approx` of src/hardware/mufu/lg2.ts. */
export function lg2Approx(
  inputs: usize,
  results: usize,
  count: i32,
  segments: usize,
  squares: usize,
  shift: i32,
): void {
  for (let i: usize = 0; i < (<usize>count) << 2; i += 4)
    store<u32>(results + i, logarithm2(load<u32>(inputs + i), segments, squares, shift));
}

/** Defined by `rsqrtApprox` of src/hardware/mufu/rsqrt.ts. */
export function rsqrtApprox(
  inputs: usize,
  results: usize,
  count: i32,
  segments: usize,
  squares: usize,
  shift: i32,
): void {
  for (let i: usize = 0; i < (<usize>count) << 2; i += 4)
    store<u32>(results + i, reciprocalSquareRoot(load<u32>(inputs + i), segments, squares, shift));
}

/** Defined by `sqrtApprox` of src/hardware/mufu/sqrt.ts. */
export function sqrtApprox(
  inputs: usize,
  results: usize,
  count: i32,
  segments: usize,
  squares: usize,
  shift: i32,
): void {
  for (let i: usize = 0; i < (<usize>count) << 2; i += 4)
    store<u32>(results + i, squareRoot(load<u32>(inputs + i), segments, squares, shift));
}

/** 1/(2π) rounded to fp32. */
const turnsPerRadian: f64 = 0.15915493667125702;
const sineGridBits = 37;

/** `isOdd` of the sine; the cosine adds a quarter of a turn, 2^23 in units of 2^-25. */
// @inline
function sine(
  bits: u32,
  segments: usize,
  squares: usize,
  shift: i64,
  added: u32,
  isOdd: bool,
): u32 {
  const magnitudeBits = bits & 0x7fffffff;
  if (magnitudeBits >= infinityBits) return canonicalNan;
  const exact = <f64>reinterpret<f32>(magnitudeBits) * turnsPerRadian;
  let turns = <f32>exact;
  if (<f64>turns > exact) turns = reinterpret<f32>(reinterpret<u32>(turns) - 1);
  const fraction = <f64>turns - Math.floor(<f64>turns);
  const angle = (<u32>(fraction * 33554432) + added) & 0x1ffffff;
  const rest = angle & fractionMask;
  const position = (angle >> 23) & 1 ? fractionMask - rest : rest;
  const sum = interpolate(segments, squares, position >> 17, position & 0x1ffff, 0) >> shift;
  const sign = ((angle >> 24) << 31) ^ (isOdd ? bits & signBit : 0);
  return sum === 0 ? sign : truncate(sign, sum, -sineGridBits);
}

// @inline
function flushed(bits: u32): u32 {
  return isSubnormal(bits) ? bits & signBit : bits;
}

/** Defined by `sinApprox`, `sinApproxFtz`, `cosApprox` and `cosApproxFtz` of src/hardware/mufu/sine.ts. */
export function sinApprox(
  inputs: usize,
  results: usize,
  count: i32,
  segments: usize,
  squares: usize,
  shift: i32,
): void {
  for (let i: usize = 0; i < (<usize>count) << 2; i += 4)
    store<u32>(results + i, sine(load<u32>(inputs + i), segments, squares, shift, 0, true));
}

export function sinApproxFtz(
  inputs: usize,
  results: usize,
  count: i32,
  segments: usize,
  squares: usize,
  shift: i32,
): void {
  for (let i: usize = 0; i < (<usize>count) << 2; i += 4)
    store<u32>(
      results + i,
      sine(flushed(load<u32>(inputs + i)), segments, squares, shift, 0, true),
    );
}

export function cosApprox(
  inputs: usize,
  results: usize,
  count: i32,
  segments: usize,
  squares: usize,
  shift: i32,
): void {
  for (let i: usize = 0; i < (<usize>count) << 2; i += 4)
    store<u32>(
      results + i,
      sine(load<u32>(inputs + i), segments, squares, shift, hiddenBit, false),
    );
}

export function cosApproxFtz(
  inputs: usize,
  results: usize,
  count: i32,
  segments: usize,
  squares: usize,
  shift: i32,
): void {
  for (let i: usize = 0; i < (<usize>count) << 2; i += 4)
    store<u32>(
      results + i,
      sine(flushed(load<u32>(inputs + i)), segments, squares, shift, hiddenBit, false),
    );
}

/**
 * `binades` holds one record of 12 bytes per binade from 2^firstExponent: index bits, log2 of the
 * sum's unit, and the address of the segments, as i32.
 */
// @inline
function hyperbolicTangent(
  bits: u32,
  binades: usize,
  squares: usize,
  firstExponent: i32,
  binadeCount: i32,
): u32 {
  const sign = bits & signBit;
  const magnitude = bits & 0x7fffffff;
  if (magnitude > infinityBits) return canonicalNan;
  const binade = <i32>(magnitude >> 23) - 127 - firstExponent;
  if (binade < 0) return bits;
  if (binade >= binadeCount) return sign | oneBits;
  const record = binades + <usize>binade * 12;
  const indexBits = load<u32>(record);
  const fraction = magnitude & fractionMask;
  const x = (fraction >> (6 - indexBits)) & 0x1ffff;
  const sum = interpolate(load<u32>(record, 8), squares, fraction >> (23 - indexBits), x, 0);
  return truncate(sign, sum, load<i32>(record, 4));
}

/** Defined by `tanhApprox` of src/hardware/mufu/tanh.ts. */
export function tanhApprox(
  inputs: usize,
  results: usize,
  count: i32,
  binades: usize,
  squares: usize,
  firstExponent: i32,
  binadeCount: i32,
): void {
  for (let i: usize = 0; i < (<usize>count) << 2; i += 4)
    store<u32>(
      results + i,
      hyperbolicTangent(load<u32>(inputs + i), binades, squares, firstExponent, binadeCount),
    );
}
