import { specialFunctionTables } from '../../../hardware/index.js';
import {
  call,
  type Expression,
  f32x4,
  f64x2,
  type FunctionBody,
  i32x4,
  i64x2,
  joinLow,
  type Subroutine,
  v128,
} from '../../webassembly/index.js';
import { magnitude } from '../float32.js';
import { hyperbolicTangent } from './hyperbolic-tangent.js';
import { cut, interpolated, segmentTables, truncated } from './interpolation.js';

// The special function unit on four lanes. Defined by the functions of src/hardware/mufu; every step here works on all
// lanes, and the results of special inputs replace the others at the end.

const infinityBits = 0x7f800000;
const hiddenBit = 0x00800000;
const fractionMask = i32x4.splat(0x7fffff);
const infinity = i32x4.splat(infinityBits);
const nan = i32x4.splat(0x7fffffff);
const signBit = i32x4.splat(0x80000000);
const zero = i32x4.splat(0);

/** `result`, or 0 where it is below the pattern of 2^-126 as a signed word. */
function flushedPattern(body: FunctionBody, result: Expression): Expression {
  const pattern = body.keep(result);
  return v128.and(pattern, i32x4.geS(pattern, i32x4.splat(hiddenBit)));
}

/** 0 or −1, by the sign. */
function signMask(bits: Expression): Expression {
  return i32x4.shrS(bits, 31);
}

/** `ex2.approx.ftz.f32`. */
export const exp2Ftz: Subroutine = {
  name: 'ex2.approx.ftz.f32',
  parameters: 1,
  build: (body, bits) => {
    const size = body.keep(magnitude(bits));
    const negative = body.keep(signMask(bits));
    // |x| in units of 2^-23, toward zero; exact before, since it is scaled by a power of two.
    const fixed = body.keep(i32x4.truncSatF32x4S(f32x4.mul(size, i32x4.splat(0x4b000000))));
    // One's complement where there is a fraction, else two's.
    const isWhole = i32x4.eq(v128.and(fixed, fractionMask), zero);
    const position = body.keep(i32x4.sub(v128.xor(fixed, negative), v128.and(negative, isWhole)));
    const x = body.keep(v128.and(position, i32x4.splat(0x1ffff)));
    const sums = interpolated(body, segmentTables.exp2, {
      place: v128.and(i32x4.shrU(position, 13), i32x4.splat(63 << 4)),
      x,
      squared: x,
    });
    const exponent = i32x4.add(v128.andnot(position, fractionMask), i32x4.splat(126 * hiddenBit));
    const result = flushedPattern(body, i32x4.add(exponent, cut(sums, 15)));
    const beyond = v128.bitselect(nan, v128.andnot(infinity, negative), i32x4.gtS(size, infinity));
    // From 128 on.
    return v128.bitselect(beyond, result, i32x4.geS(size, i32x4.splat(0x43000000)));
  },
};

/** `ex2.approx.f32`. */
export const exp2: Subroutine = {
  name: 'ex2.approx.f32',
  parameters: 1,
  build: (body, bits) => {
    // Patterns of negative numbers from -126 to -infinity, both left out, ascend as signed words.
    const isTiny = body.keep(
      v128.and(i32x4.gtS(bits, i32x4.splat(0xc2fc0000)), i32x4.ltS(bits, i32x4.splat(0xff800000))),
    );
    const halved = i32x4.sub(bits, v128.and(isTiny, i32x4.splat(hiddenBit)));
    const result = body.keep(call(exp2Ftz, halved));
    return v128.bitselect(f32x4.mul(result, result), result, isTiny);
  },
};

/** `rcp.approx.ftz.f32`. */
export const reciprocal: Subroutine = {
  name: 'rcp.approx.ftz.f32',
  parameters: 1,
  build: (body, bits) => {
    const size = body.keep(magnitude(bits));
    const x = body.keep(v128.and(size, i32x4.splat(0xffff)));
    const sums = interpolated(body, segmentTables.reciprocal, {
      place: v128.and(i32x4.shrU(size, 12), i32x4.splat(127 << 4)),
      x,
      squared: i32x4.shl(x, 1),
    });
    const exponent = i32x4.sub(i32x4.splat(252 * hiddenBit), v128.and(size, infinity));
    const usual = flushedPattern(body, i32x4.add(exponent, cut(sums, 15)));
    const ofLarge = v128.andnot(usual, i32x4.eq(size, infinity));
    const result = v128.bitselect(infinity, ofLarge, i32x4.ltS(size, i32x4.splat(hiddenBit)));
    return v128.bitselect(nan, v128.or(result, v128.and(bits, signBit)), i32x4.gtS(size, infinity));
  },
};

/**
 * `usual` for positive normal numbers, and the results of the logarithm and the reciprocal square root for others:
 * NaN for negative ones and NaN, `ofZero` for zeros and subnormal ones, `ofInfinity`.
 */
function ofPositive(
  bits: Expression,
  size: Expression,
  usual: Expression,
  ofZero: Expression,
  ofInfinity: Expression,
): Expression {
  const result = v128.bitselect(ofInfinity, usual, i32x4.eq(bits, infinity));
  const isInvalid = v128.or(i32x4.gtS(size, infinity), signMask(bits));
  return v128.bitselect(
    ofZero,
    v128.bitselect(nan, result, isInvalid),
    i32x4.ltS(size, i32x4.splat(hiddenBit)),
  );
}

const log2GridBits = 36;

/** `lg2.approx.ftz.f32`. */
export const log2: Subroutine = {
  name: 'lg2.approx.ftz.f32',
  parameters: 1,
  build: (body, bits) => {
    const size = body.keep(magnitude(bits));
    const x = body.keep(v128.and(size, i32x4.splat(0x1ffff)));
    const [low, high] = interpolated(body, segmentTables.log2, {
      place: v128.and(i32x4.shrU(size, 13), i32x4.splat(63 << 4)),
      x,
      squared: x,
    });
    const exponent = body.keep(i32x4.sub(i32x4.shrU(size, 23), i32x4.splat(127)));
    // Below 1 the sum of exponent and fraction is negative.
    const negative = body.keep(signMask(exponent));
    const logarithm = (sum: Expression, whole: Expression, mask: Expression): Expression => {
      const fixed = i64x2.add(i64x2.shl(whole, log2GridBits), i64x2.shrU(sum, 2));
      return truncated(v128.xor(fixed, mask), f64x2.splat(2 ** -log2GridBits));
    };
    const result = joinLow(
      f32x4.demoteF64x2Zero(
        logarithm(low, i64x2.extendLowI32x4S(exponent), i64x2.extendLowI32x4S(negative)),
      ),
      f32x4.demoteF64x2Zero(
        logarithm(high, i64x2.extendHighI32x4S(exponent), i64x2.extendHighI32x4S(negative)),
      ),
    );
    const signed = v128.or(result, v128.and(negative, signBit));
    const usual = v128.andnot(signed, i32x4.eq(size, i32x4.splat(0x3f800000)));
    return ofPositive(bits, size, usual, i32x4.splat(0xff800000), infinity);
  },
};

/** `rsqrt.approx.ftz.f32`. */
export const reciprocalSquareRoot: Subroutine = {
  name: 'rsqrt.approx.ftz.f32',
  parameters: 1,
  build: (body, bits) => {
    const size = body.keep(magnitude(bits));
    const fromOne = body.keep(i32x4.sub(size, i32x4.splat(0x3f800000)));
    const x = body.keep(v128.and(fromOne, i32x4.splat(0x1ffff)));
    const sums = interpolated(body, segmentTables.reciprocalSquareRoot, {
      place: v128.and(i32x4.shrU(fromOne, 13), i32x4.splat(127 << 4)),
      x,
      squared: x,
    });
    // Half the exponent, rounded down; a power of four is exact, one binade up.
    const half = i32x4.shl(i32x4.shrS(fromOne, 24), 23);
    const isPower = body.keep(i32x4.eq(v128.and(fromOne, i32x4.splat(0xffffff)), zero));
    const significand = v128.bitselect(i32x4.splat(2 * hiddenBit), cut(sums, 16), isPower);
    const usual = i32x4.add(i32x4.sub(i32x4.splat(125 * hiddenBit), half), significand);
    const ofZero = v128.or(infinity, v128.and(bits, signBit));
    return ofPositive(bits, size, usual, ofZero, zero);
  },
};

/** `sqrt.approx.ftz.f32`. */
export const squareRoot: Subroutine = {
  name: 'sqrt.approx.ftz.f32',
  parameters: 1,
  build: (body, bits) => {
    const size = body.keep(magnitude(bits));
    const fromOne = body.keep(i32x4.sub(size, i32x4.splat(0x3f800000)));
    const x = body.keep(v128.and(fromOne, i32x4.splat(0x1ffff)));
    const sums = interpolated(body, segmentTables.squareRoot, {
      place: v128.and(i32x4.shrU(fromOne, 13), i32x4.splat(127 << 4)),
      x,
      squared: x,
    });
    const half = i32x4.shl(i32x4.shrS(fromOne, 24), 23);
    const usual = i32x4.add(i32x4.add(half, i32x4.splat(126 * hiddenBit)), cut(sums, 17));
    return ofPositive(bits, size, usual, v128.and(bits, signBit), infinity);
  },
};

/** `tanh.approx.f32`. */
export const tanh = hyperbolicTangent(specialFunctionTables.tanh);
