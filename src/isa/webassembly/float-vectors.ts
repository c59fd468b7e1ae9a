import type { Expression } from './function-body.js';
import { binary, ofLane, replacing, unary } from './instructions.js';
import { splat64 } from './integer-vectors.js';

// Vector instructions on floating-point numbers, under the names that WebAssembly has for them.

/** fp32. */
export const f32x4 = {
  extractLane: ofLane(0x1f),
  replaceLane: replacing(0x20),
  eq: binary(0x41),
  ne: binary(0x42),
  lt: binary(0x43),
  gt: binary(0x44),
  le: binary(0x45),
  ge: binary(0x46),
  demoteF64x2Zero: unary(0x5e),
  ceil: unary(0x67),
  floor: unary(0x68),
  trunc: unary(0x69),
  nearest: unary(0x6a),
  sqrt: unary(0xe3),
  add: binary(0xe4),
  sub: binary(0xe5),
  mul: binary(0xe6),
  div: binary(0xe7),
  min: binary(0xe8),
  max: binary(0xe9),
  /** b where b < a, else a. */
  pmin: binary(0xea),
  /** b where a < b, else a. */
  pmax: binary(0xeb),
  convertI32x4S: unary(0xfa),
  convertI32x4U: unary(0xfb),
};

/** fp64. */
export const f64x2 = {
  extractLane: ofLane(0x21),
  replaceLane: replacing(0x22),
  splat: (value: number): Expression =>
    splat64(new BigUint64Array(Float64Array.of(value).buffer)[0]),
  eq: binary(0x47),
  ne: binary(0x48),
  lt: binary(0x49),
  gt: binary(0x4a),
  le: binary(0x4b),
  ge: binary(0x4c),
  promoteLowF32x4: unary(0x5f),
  ceil: unary(0x74),
  floor: unary(0x75),
  trunc: unary(0x7a),
  nearest: unary(0x94),
  convertLowI32x4S: unary(0xfe),
  convertLowI32x4U: unary(0xff),
  pmin: binary(0xf6),
  pmax: binary(0xf7),
  abs: unary(0xec),
  neg: unary(0xed),
  sqrt: unary(0xef),
  add: binary(0xf0),
  sub: binary(0xf1),
  mul: binary(0xf2),
  div: binary(0xf3),
};
