import {
  type Expression,
  f64x2,
  type FunctionBody,
  highWords,
  i32x4,
  i64x2,
  lowWords,
  swapHalves,
  v128,
} from '../webassembly/index.js';
import type { Vectors } from './emit.js';

/** A function of two vectors. */
export type Pairwise = (a: Expression, b: Expression) => Expression;

/** The low 16 bits of each word. */
export function low16(a: Expression): Expression {
  return v128.and(a, i32x4.splat(0xffff));
}

/** The low 16 bits of each word, sign-extended. */
export function signed16(a: Expression): Expression {
  return i32x4.shrS(i32x4.shl(a, 16), 16);
}

const signBit64 = i64x2.splat(1n << 63n);

/** A comparison of unsigned 64-bit lanes, made from one of signed lanes. */
export function unsigned64(compare: Pairwise): Pairwise {
  return (a, b) => compare(v128.xor(a, signBit64), v128.xor(b, signBit64));
}

/** A vector of 64-bit lanes from the computation for each of its two lanes, where WebAssembly has it for one number. */
export function bothLanes(compute: (lane: number) => Expression): Expression {
  return i64x2.replaceLane(i64x2.replaceLane(i32x4.splat(0), 0, compute(0)), 1, compute(1));
}

/** The high words of products of words. */
export function highProduct(isSigned: boolean): Pairwise {
  return isSigned
    ? (a, b) => highWords(i64x2.extmulLowI32x4S(a, b), i64x2.extmulHighI32x4S(a, b))
    : (a, b) => highWords(i64x2.extmulLowI32x4U(a, b), i64x2.extmulHighI32x4U(a, b));
}

/** The high 64 bits of an unsigned product, from the products of 32-bit halves. */
function highUnsigned64(body: FunctionBody, a: Vectors, b: Vectors): Vectors {
  const [aLow, aHigh] = [lowWords(a[0], a[1]), highWords(a[0], a[1])].map(body.keep);
  const [bLow, bHigh] = [lowWords(b[0], b[1]), highWords(b[0], b[1])].map(body.keep);
  const low32 = i64x2.splat(0xffffffffn);
  return [i64x2.extmulLowI32x4U, i64x2.extmulHighI32x4U].map((product) => {
    const first = body.keep(i64x2.add(product(aLow, bHigh), i64x2.shrU(product(aLow, bLow), 32)));
    const second = i64x2.add(product(aHigh, bLow), v128.and(first, low32));
    return i64x2.add(
      i64x2.add(product(aHigh, bHigh), i64x2.shrU(first, 32)),
      i64x2.shrU(second, 32),
    );
  });
}

/** The high 64 bits of a product; a negative factor counts as 2^64 more than its value. */
export function highProduct64(
  isSigned: boolean,
  body: FunctionBody,
  a: Vectors,
  b: Vectors,
): Vectors {
  const unsigned = highUnsigned64(body, a, b);
  if (!isSigned) return unsigned;
  return unsigned.map((high, i) =>
    i64x2.sub(
      i64x2.sub(high, v128.and(i64x2.shrS(a[i], 63), b[i])),
      v128.and(i64x2.shrS(b[i], 63), a[i]),
    ),
  );
}

/** Added to an integer, it gives an fp64 number below 2^53 whose low word is the integer's, for negative ones too. */
const toInteger = f64x2.splat(2 ** 52 + 2 ** 51);

/**
 * The quotient of words. In fp64 it lies closer to the exact one than that does to the next integer, so that its integer
 * part is right.
 */
export function quotientOfWords(
  body: FunctionBody,
  isSigned: boolean,
  a: Expression,
  b: Expression,
): Expression {
  const convert = isSigned ? f64x2.convertLowI32x4S : f64x2.convertLowI32x4U;
  const half = (x: Expression, y: Expression): Expression =>
    f64x2.add(f64x2.trunc(f64x2.div(convert(x), convert(y))), toInteger);
  return body.keep(lowWords(half(a, b), half(swapHalves(a), swapHalves(b))));
}
