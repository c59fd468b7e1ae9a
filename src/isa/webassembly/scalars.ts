import type { Expression, Subroutine } from './function-body.js';
import { i32Constant, plain, plainUnary, saturatingTruncation } from './instructions.js';

/** Instructions on 32-bit integers. */
export const i32 = {
  constant: i32Constant,
  eqz: plainUnary(0x45),
  ne: plain(0x47),
  clz: plainUnary(0x67),
  add: plain(0x6a),
  and: plain(0x71),
  shl: plain(0x74),
  shrU: plain(0x76),
  wrapI64: plainUnary(0xa7),
};

/** Instructions on 64-bit integers. */
export const i64 = {
  divS: plain(0x7f),
  divU: plain(0x80),
  remS: plain(0x81),
  remU: plain(0x82),
  truncSatF32S: saturatingTruncation(4),
  truncSatF32U: saturatingTruncation(5),
  truncSatF64S: saturatingTruncation(6),
  truncSatF64U: saturatingTruncation(7),
  clz: plainUnary(0x79),
  shl: plain(0x86),
  shrS: plain(0x87),
  shrU: plain(0x88),
  extendI32U: plainUnary(0xad),
};

/** Instructions on fp32 numbers. */
export const f32 = { convertI64S: plainUnary(0xb4), convertI64U: plainUnary(0xb5) };

/** Instructions on fp64 numbers. */
export const f64 = { convertI64S: plainUnary(0xb9), convertI64U: plainUnary(0xba) };

/** The result of a subroutine for vectors. */
export function call(subroutine: Subroutine, ...parameters: Expression[]): Expression {
  return (body) => {
    for (const parameter of parameters) parameter(body);
    const index = body.subroutineIndex(subroutine);
    body.code.byte(0x10);
    body.code.unsigned(index);
  };
}
