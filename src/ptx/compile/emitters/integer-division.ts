import {
  type Expression,
  f64x2,
  type FunctionBody,
  i32x4,
  lowWords,
  swapHalves,
  v128,
} from '../../../isa/webassembly/index.js';
import { type Emitter, onWords } from './emitter.js';
import { low16, signed16 } from './integer.js';

// A quotient of 32-bit integers in fp64 lies closer to the exact one than that does to the next integer, so that its
// integer part is right.

interface DividedType {
  readonly name: string;
  readonly convert: (a: Expression) => Expression;
  readonly extended: (a: Expression) => Expression;
  readonly cut: (a: Expression) => Expression;
}

const same = (a: Expression): Expression => a;

const types: readonly DividedType[] = [
  { name: 'u32', convert: f64x2.convertLowI32x4U, extended: same, cut: same },
  { name: 's32', convert: f64x2.convertLowI32x4S, extended: same, cut: same },
  { name: 'u16', convert: f64x2.convertLowI32x4U, extended: same, cut: low16 },
  { name: 's16', convert: f64x2.convertLowI32x4S, extended: signed16, cut: low16 },
];

/** Added to an integer, it gives an fp64 number below 2^53 whose low word is the integer's, for negative ones too. */
const toInteger = f64x2.splat(2 ** 52 + 2 ** 51);

function quotient(
  body: FunctionBody,
  { convert }: DividedType,
  a: Expression,
  b: Expression,
): Expression {
  const half = (x: Expression, y: Expression): Expression =>
    f64x2.add(f64x2.trunc(f64x2.div(convert(x), convert(y))), toInteger);
  return body.keep(lowWords(half(a, b), half(swapHalves(a), swapHalves(b))));
}

/** `div` and `rem` of 16 and 32 bits; division by zero gives all ones. */
export const integerDivisionEmitters: readonly Emitter[] = types.flatMap((type): Emitter[] => {
  const divided = (
    body: FunctionBody,
    first: Expression,
    second: Expression,
    ofQuotient: (quotient: Expression, a: Expression, b: Expression) => Expression,
  ): Expression => {
    const [a, b] = [body.keep(type.extended(first)), body.keep(type.extended(second))];
    const result = ofQuotient(quotient(body, type, a, b), a, b);
    return type.cut(v128.or(result, i32x4.eq(b, i32x4.splat(0))));
  };
  return [
    onWords(`div.${type.name}`, 2, (body, a, b) => divided(body, a, b, (q) => q)),
    onWords(`rem.${type.name}`, 2, (body, a, b) =>
      divided(body, a, b, (q, x, y) => i32x4.sub(x, i32x4.mul(q, y))),
    ),
  ];
});
