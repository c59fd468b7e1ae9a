import { type Row, row } from '../row.js';
import {
  bothLanes,
  type Emit,
  low16,
  onWords,
  quotientOfWords,
  signed16,
} from '../vectors/index.js';
import { type Expression, i32x4, i64, i64x2, v128 } from '../webassembly/index.js';
import { integerAlternatives, integerTypeOf, ofBigInts } from './operators.js';

/** What tells `div` from `rem`: the result from the quotient, and that of a divisor of −1. */
const divisions = {
  div: {
    compute: (a: bigint, b: bigint) => a / b,
    ofWords: (quotient: Expression) => quotient,
    unsigned: i64.divU,
    signed: i64.divS,
    ofMinusOne: (a: Expression) => i64x2.neg(a),
  },
  rem: {
    compute: (a: bigint, b: bigint) => a % b,
    ofWords: (quotient: Expression, a: Expression, b: Expression) =>
      i32x4.sub(a, i32x4.mul(quotient, b)),
    unsigned: i64.remU,
    signed: i64.remS,
    ofMinusOne: () => i64x2.splat(0n),
  },
} as const;

/**
 * Divides lane by lane. A divisor of 0 is replaced by 1, and the result there by −1; of signed numbers a divisor of −1, by
 * which not every one can be divided, is replaced by 1 too.
 */
function wideDivisionCode(opcode: 'div' | 'rem', isSigned: boolean): Emit {
  const { unsigned, signed, ofMinusOne } = divisions[opcode];
  const divide = isSigned ? signed : unsigned;
  return (body, { vectors }, divisors) => [
    vectors.map((a, i) => {
      const b = divisors.vectors[i];
      const isZero = body.keep(i64x2.eq(b, i64x2.splat(0n)));
      const isMinusOne = body.keep(i64x2.eq(b, i64x2.splat((1n << 64n) - 1n)));
      const replaced = isSigned ? v128.or(isZero, isMinusOne) : isZero;
      const divisor = body.keep(v128.bitselect(i64x2.splat(1n), b, replaced));
      const result = bothLanes((lane) =>
        divide(i64x2.extractLane(a, lane), i64x2.extractLane(divisor, lane)),
      );
      const known = isSigned ? v128.bitselect(ofMinusOne(a), result, isMinusOne) : result;
      return v128.or(known, isZero);
    }),
  ];
}

function divisionCode(opcode: 'div' | 'rem', type: string): Emit {
  const { bits, isSigned } = integerTypeOf(type);
  if (bits === 64) return wideDivisionCode(opcode, isSigned);
  const extended = (a: Expression): Expression => (type === 's16' ? signed16(a) : a);
  return onWords((body, first, second) => {
    const [a, b] = [body.keep(extended(first)), body.keep(extended(second))];
    const quotient = quotientOfWords(body, isSigned, a, b);
    const result = divisions[opcode].ofWords(quotient, a, b);
    const known = v128.or(result, i32x4.eq(b, i32x4.splat(0)));
    return bits === 16 ? low16(known) : known;
  });
}

/**
 * Quotients rounded toward zero, and remainders with the sign of the dividend. For a divisor of zero, which PTX
 * leaves open, both are all ones: the result of the instructions that implement a division.
 */
export const integerQuotientRows: readonly Row[] = (['div', 'rem'] as const).map((opcode) =>
  row({
    alternatives: { type: integerAlternatives },
    syntax: `${opcode}.type d, a, b`,
    evaluate: ({ type: name }) => {
      const type = integerTypeOf(name);
      const { compute } = divisions[opcode];
      return ofBigInts(type, [type, type], (a, b) => (b === 0n ? -1n : compute(a, b)));
    },
    emit: ({ type }) => divisionCode(opcode, type),
    meaning: 'decides',
    unit: 'alu',
    evidence: 'silicon',
    section: 'Integer Arithmetic Instructions',
    also: 'by zero as ptxas 12.8 has it for sm_90',
  }),
);
