import { packConversion, type PairConversionName } from '../../hardware/index.js';
import { type Expression, f32x4, type FunctionBody, i32x4, v128 } from '../webassembly/index.js';
import { magnitude } from './float32.js';
import { widenedFloat16 } from './float16.js';

const signBit = i32x4.splat(0x80000000);
const infinity = i32x4.splat(0x7f800000);

/** fp32 to a shorter format, rounded by the record that src/simd/assembly/convert.ts reads too. */
export function shortened(
  body: FunctionBody,
  name: PairConversionName,
  bits: Expression,
): Expression {
  const record = packConversion(name);
  const word = (i: number): number => record.getUint32(4 * i, true);
  const [drop, signShift, isTowardZero] = [word(0), word(8), word(9) !== 0];
  const size = body.keep(magnitude(bits));
  const rebiased = body.keep(i32x4.sub(size, i32x4.splat(word(1))));
  const half = i32x4.splat(2 ** (drop - 1) - 1);
  const lowest = v128.and(i32x4.shrS(rebiased, drop), i32x4.splat(1));
  const normal = isTowardZero
    ? i32x4.shrS(rebiased, drop)
    : i32x4.shrS(i32x4.add(i32x4.add(rebiased, half), lowest), drop);
  let result = body.keep(normal);
  if (word(2) !== 0) {
    // In units of the smallest subnormal number; below 2^23 the fraction of the sum is the integer.
    const units = f32x4.mul(size, i32x4.splat(word(3)));
    const integer = isTowardZero ? f32x4.trunc(units) : f32x4.nearest(units);
    const magic = i32x4.splat(0x4b000000);
    const subnormal = i32x4.sub(f32x4.add(integer, magic), magic);
    result = body.keep(v128.bitselect(subnormal, result, i32x4.ltS(size, i32x4.splat(word(2)))));
  }
  const overflow = v128.bitselect(
    i32x4.splat(word(5)),
    result,
    i32x4.gtS(result, i32x4.splat(word(4))),
  );
  const known = v128.bitselect(i32x4.splat(word(6)), overflow, i32x4.eq(size, infinity));
  const signed = v128.or(known, i32x4.shrU(v128.and(bits, signBit), signShift));
  return body.keep(v128.bitselect(i32x4.splat(word(7)), signed, i32x4.gtS(size, infinity)));
}

/** A format of 16 bits: its numbers as fp32, and fp32 rounded to nearest even to the format. */
export interface HalfFormat {
  readonly name: 'f16' | 'bf16';
  readonly widened: (body: FunctionBody, a: Expression) => Expression;
  readonly shortened: (body: FunctionBody, a: Expression) => Expression;
  readonly infinity: number;
}

/** The formats of 16 bits, by their names in PTX. */
export const halfFormats: Readonly<Record<HalfFormat['name'], HalfFormat>> = {
  f16: {
    name: 'f16',
    widened: (body, a) => body.keep(widenedFloat16(body, a)),
    shortened: (body, a) => shortened(body, 'cvt.rn.f16x2.f32', body.keep(a)),
    infinity: 0x7c00,
  },
  bf16: {
    name: 'bf16',
    widened: (body, a) => body.keep(i32x4.shl(a, 16)),
    shortened: (body, a) => shortened(body, 'cvt.rn.bf16x2.f32', body.keep(a)),
    infinity: 0x7f80,
  },
};
