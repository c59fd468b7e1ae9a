import type { LaneValue } from '../instruction.js';
import { type Row, row } from '../row.js';
import {
  integerOf,
  type IntegerType,
  rangeOf,
  registerOf,
  registerValue,
  saturate,
} from '../values/integer-type.js';
import type { SourceValue, Vectors } from '../vectors/index.js';
import { type Expression, i32x4, i64x2, lowWords, v128 } from '../webassembly/index.js';
import { integerTypeOf } from './operators.js';

const alternatives = ['.u8', '.s8', '.u16', '.s16', '.u32', '.s32', '.u64', '.s64'] as const;
type Width = 16 | 32 | 64;

/** Whether registers of a width hold results of a type: wider registers hold a signed type extended. */
function isHeldIn({ bits, isSigned }: IntegerType, width: Width): boolean {
  const narrowest = registerOf(bits) as Width;
  return isSigned ? width >= narrowest : width === narrowest;
}

/** Whether `.sat` can change something; else the manual does not allow it. */
function canSaturate(to: IntegerType, from: IntegerType): boolean {
  return rangeOf(from).some((end) => saturate(to, end) !== end);
}

/** The low bits of a word, extended as the type's sign says. */
function extended({ bits, isSigned }: IntegerType, word: Expression): Expression {
  if (bits >= 32) return word;
  return isSigned
    ? i32x4.shrS(i32x4.shl(word, 32 - bits), 32 - bits)
    : v128.and(word, i32x4.splat(2 ** bits - 1));
}

/** The low words of a register of any width. */
function wordOf({ vectors }: SourceValue): Expression {
  return vectors.length === 1 ? vectors[0] : lowWords(vectors[0], vectors[1]);
}

/** The value that `cvt` leaves in a register: cut to the narrower type, then extended by the result's. */
function converted(
  to: IntegerType,
  from: IntegerType,
  width: Width,
  source: SourceValue,
  keep: (expression: Expression) => Expression,
): Vectors {
  if (to.bits === 64 && from.bits === 64) return source.vectors;
  const word = extended(to, extended(from, wordOf(source)));
  if (width === 16) return [v128.and(word, i32x4.splat(0xffff))];
  if (width === 32) return [word];
  const kept = keep(word);
  // A result of 64 bits is extended by the sign of its source, a shorter one by its own.
  const { isSigned } = to.bits === 64 ? from : to;
  return isSigned
    ? [i64x2.extendLowI32x4S(kept), i64x2.extendHighI32x4S(kept)]
    : [i64x2.extendLowI32x4U(kept), i64x2.extendHighI32x4U(kept)];
}

/** The row of the results that registers of a width hold. */
function rowOf(width: Width): Row {
  return row({
    syntax: 'cvt{.sat}.dtype.atype d, a',
    alternatives: { dtype: alternatives, atype: alternatives },
    operands: { d: `b${width}` },
    except: ({ sat, dtype, atype }) =>
      !isHeldIn(integerTypeOf(dtype), width) ||
      (sat !== '' && !canSaturate(integerTypeOf(dtype), integerTypeOf(atype))),
    evaluate: ({ sat, dtype, atype }) => {
      const [to, from] = [integerTypeOf(dtype), integerTypeOf(atype)];
      return (value: LaneValue): LaneValue => {
        const integer = integerOf(from, value);
        const kept = sat === '' ? integer : saturate(to, integer);
        return registerValue(width, integerOf(to, registerValue(64, kept)));
      };
    },
    emit: ({ sat, dtype, atype }) =>
      sat === ''
        ? (body, source) => [
            converted(integerTypeOf(dtype), integerTypeOf(atype), width, source, body.keep),
          ]
        : null,
    meaning: ({ sat }) => (sat === '' ? 'moves' : 'is'),
    unit: 'conversion',
    evidence: 'silicon',
    section: 'Data Movement and Conversion Instructions',
  });
}

/**
 * `cvt` between integers: cut to the bits of the type, or clamped to its range with `.sat`, and then
 * extended to the register by the type's sign.
 */
export const integerConversionRows: readonly Row[] = [rowOf(16), rowOf(32), rowOf(64)];
