import type { Expression, FunctionBody } from './function-body.js';
import {
  binary,
  constant,
  i32Constant,
  ofLane,
  replacing,
  shift,
  simd,
  unary,
  writeAddress,
} from './instructions.js';

// Vector instructions on bits and integers, under the names that WebAssembly has for them.

/** Bits of whole vectors, and memory. */
export const v128 = {
  not: unary(0x4d),
  and: binary(0x4e),
  /** The bits of a that are not set in b. */
  andnot: binary(0x4f),
  or: binary(0x50),
  xor: binary(0x51),
  /** The bits of `a` where `mask` has ones, of `b` elsewhere. */
  bitselect:
    (a: Expression, b: Expression, mask: Expression): Expression =>
    (body) => {
      a(body);
      b(body);
      mask(body);
      simd(body, 0x52);
    },
  anyTrue: unary(0x53),
  load:
    (address: Expression, offset = 0): Expression =>
    (body) => {
      address(body);
      simd(body, 0x00);
      writeAddress(body, offset);
    },
  /** `vector` with one 16-bit lane loaded from memory. */
  load16Lane:
    (address: Expression, offset: number, vector: Expression, lane: number): Expression =>
    (body) => {
      address(body);
      vector(body);
      simd(body, 0x55);
      writeAddress(body, offset);
      body.code.byte(lane);
    },
  /** A statement, not an expression. */
  store: (body: FunctionBody, address: Expression, offset: number, value: Expression): void => {
    address(body);
    value(body);
    simd(body, 0x0b);
    writeAddress(body, offset);
  },
};

/** Bytes. */
export const i8x16 = {
  swizzle: binary(0x0e),
  popcnt: unary(0x62),
  shrS: shift(0x6c),
  /** Bytes of {a, b} by their numbers, with those of a first. */
  shuffle:
    (a: Expression, b: Expression, bytes: readonly number[]): Expression =>
    (body) => {
      a(body);
      b(body);
      simd(body, 0x0d);
      body.code.bytes(bytes);
    },
};

/** 16-bit lanes. */
export const i16x8 = {
  extendLowI8x16S: unary(0x87),
  extendHighI8x16S: unary(0x88),
  extendLowI8x16U: unary(0x89),
  extendHighI8x16U: unary(0x8a),
  extaddPairwiseI8x16U: unary(0x7d),
};

/** The same bits, given as −2^31 to 2^31 − 1 or as 0 to 2^32 − 1, in every lane. */
function splat32(bits: number): Expression {
  const word = i32Constant(bits);
  return (body) => {
    word(body);
    simd(body, 0x11);
  };
}

/** The same 64 bits, not negative, in both lanes. */
export function splat64(bits: bigint): Expression {
  const words = Array.from({ length: 8 }, (_, i) => Number((bits >> BigInt(8 * i)) & 0xffn));
  return constant([...words, ...words]);
}

/** Words. */
export const i32x4 = {
  /** The same bits in every lane. */
  splat: splat32,
  of: (words: readonly number[]): Expression =>
    constant(new Uint8Array(Int32Array.from(words).buffer)),
  /** The value of an i32 expression in every lane. */
  splatOf: unary(0x11),
  extractLane: ofLane(0x1b),
  replaceLane: replacing(0x1c),
  eq: binary(0x37),
  ne: binary(0x38),
  ltS: binary(0x39),
  ltU: binary(0x3a),
  gtS: binary(0x3b),
  gtU: binary(0x3c),
  leS: binary(0x3d),
  leU: binary(0x3e),
  geS: binary(0x3f),
  geU: binary(0x40),
  extaddPairwiseI16x8U: unary(0x7f),
  abs: unary(0xa0),
  neg: unary(0xa1),
  shl: shift(0xab),
  shrS: shift(0xac),
  shrU: shift(0xad),
  add: binary(0xae),
  sub: binary(0xb1),
  mul: binary(0xb5),
  minS: binary(0xb6),
  minU: binary(0xb7),
  maxS: binary(0xb8),
  maxU: binary(0xb9),
  truncSatF32x4S: unary(0xf8),
  dotI16x8S: binary(0xba),
  truncSatF32x4U: unary(0xf9),
  truncSatF64x2SZero: unary(0xfc),
  truncSatF64x2UZero: unary(0xfd),
};

/** 64-bit lanes. */
export const i64x2 = {
  splat: splat64,
  extractLane: ofLane(0x1d),
  replaceLane: replacing(0x1e),
  abs: unary(0xc0),
  neg: unary(0xc1),
  extendLowI32x4S: unary(0xc7),
  extendHighI32x4S: unary(0xc8),
  extendLowI32x4U: unary(0xc9),
  extendHighI32x4U: unary(0xca),
  shl: shift(0xcb),
  shrS: shift(0xcc),
  shrU: shift(0xcd),
  add: binary(0xce),
  sub: binary(0xd1),
  mul: binary(0xd5),
  eq: binary(0xd6),
  ne: binary(0xd7),
  ltS: binary(0xd8),
  gtS: binary(0xd9),
  leS: binary(0xda),
  geS: binary(0xdb),
  extmulLowI32x4S: binary(0xdc),
  extmulHighI32x4S: binary(0xdd),
  extmulLowI32x4U: binary(0xde),
  extmulHighI32x4U: binary(0xdf),
};
