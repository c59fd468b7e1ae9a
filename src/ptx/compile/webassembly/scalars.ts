import type { Expression, Subroutine } from './function-body.js';
import { i32Constant, plain, plainUnary } from './instructions.js';

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
  clz: plainUnary(0x79),
  shl: plain(0x86),
  shrS: plain(0x87),
  shrU: plain(0x88),
  extendI32U: plainUnary(0xad),
};

/** What a subroutine gives for vectors. */
export function call(subroutine: Subroutine, ...parameters: Expression[]): Expression {
  return (body) => {
    for (const parameter of parameters) parameter(body);
    const index = body.subroutineIndex(subroutine);
    body.code.byte(0x10);
    body.code.unsigned(index);
  };
}
