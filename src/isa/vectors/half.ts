import { packConversion, type PairConversionName } from '../../hardware/index.js';
import {
  type Expression,
  f32x4,
  f64x2,
  type FunctionBody,
  i32x4,
  lowWords,
  type Subroutine,
  v128,
} from '../webassembly/index.js';
import { rounded } from './directed-rounding.js';
import { magnitude } from './float32.js';
import { eachHalf, type Halves, promoted, sumToOdd } from './fused-multiply-add.js';
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

/** fp64 numbers rounded to odd fp32: a further rounding to a shorter format then gives the correctly rounded number. */
function roundedToOdd(body: FunctionBody, values: Halves): Expression {
  const truncated = rounded(body, values, 'toward-zero');
  const back = promoted(truncated);
  // NaN differs from itself; one more low bit leaves it NaN.
  const isInexact = lowWords(f64x2.ne(back.low, values.low), f64x2.ne(back.high, values.high));
  return v128.or(truncated, v128.and(isInexact, i32x4.splat(1)));
}

/** a·b + c of numbers of a half format that are given as fp32, rounded to odd fp32. */
export const fusedToOdd: Subroutine = {
  name: 'fma of halves',
  parameters: 3,
  build: (body, a, b, c) => {
    const [x, y, z] = [a, b, c].map(promoted);
    const sums = eachHalf((half) =>
      sumToOdd(body, body.keep(f64x2.mul(x[half], y[half])), body.keep(z[half])),
    );
    return roundedToOdd(body, sums);
  },
};

/** a·b of such numbers, rounded to odd fp32. */
export const productToOdd: Subroutine = {
  name: 'mul of halves',
  parameters: 2,
  build: (body, a, b) => {
    const [x, y] = [promoted(a), promoted(b)];
    return roundedToOdd(
      body,
      eachHalf((half) => body.keep(f64x2.mul(x[half], y[half]))),
    );
  },
};
