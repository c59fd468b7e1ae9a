import { type Expression, f32x4, type FunctionBody, i32x4, v128 } from '../webassembly/index.js';
import { magnitude } from './float32.js';

const infinity = i32x4.splat(0x7f800000);
const float16Infinity = i32x4.splat(0x7c00);

/** fp16 to fp32, from the low half of a word; NaN gives 0x7fffffff. */
export function widenedFloat16(body: FunctionBody, a: Expression): Expression {
  const size = body.keep(v128.and(a, i32x4.splat(0x7fff)));
  // With fp16's exponent in fp32's place the number is 2^112 too small, subnormal ones too.
  const value = f32x4.mul(i32x4.shl(size, 13), i32x4.splat((127 + 112) << 23));
  const finite = v128.bitselect(infinity, value, i32x4.eq(size, i32x4.splat(0x7c00)));
  const sign = i32x4.shl(v128.and(a, i32x4.splat(0x8000)), 16);
  return v128.bitselect(
    i32x4.splat(0x7fffffff),
    v128.or(finite, sign),
    i32x4.gtS(size, i32x4.splat(0x7c00)),
  );
}

/** fp32 to fp16 toward zero, except infinity from 2^16 on; NaN gives 0x7fff. `a` is written several times. */
export function truncatedToFloat16(body: FunctionBody, a: Expression): Expression {
  const size = body.keep(magnitude(a));
  // The biases of the exponents differ by 112, and fp32 has 13 more fraction bits.
  const rebiased = body.keep(i32x4.shrS(i32x4.sub(size, i32x4.splat(112 << 23)), 13));
  const normal = i32x4.minS(rebiased, float16Infinity);
  // Below 2^-14 the pattern counts units of 2^-24.
  const subnormal = i32x4.truncSatF32x4S(f32x4.mul(size, i32x4.splat((127 + 24) << 23)));
  const known = v128.bitselect(normal, subnormal, i32x4.geS(rebiased, i32x4.splat(0x0400)));
  const sign = v128.and(i32x4.shrU(a, 16), i32x4.splat(0x8000));
  return v128.bitselect(i32x4.splat(0x7fff), v128.or(known, sign), i32x4.gtS(size, infinity));
}
