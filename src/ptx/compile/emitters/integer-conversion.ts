import { type Expression, i32x4, i64x2, lowWords, v128 } from '../../../isa/webassembly/index.js';
import type { Emitter, SourceValue, Vectors } from './emitter.js';

interface IntegerType {
  readonly name: string;
  readonly bits: 8 | 16 | 32 | 64;
  readonly isSigned: boolean;
}

const types: readonly IntegerType[] = ([8, 16, 32, 64] as const).flatMap((bits) => [
  { name: `u${bits}`, bits, isSigned: false },
  { name: `s${bits}`, bits, isSigned: true },
]);

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

/**
 * The value that `cvt` leaves in a register of 16, 32 or 64 bits: cut to the narrower type, then extended by the
 * result's.
 */
function converted(
  to: IntegerType,
  from: IntegerType,
  width: 16 | 32 | 64,
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

/** Registers that hold a result: the narrowest, and wider ones into which a signed one is extended. */
function registersOf({ bits, isSigned }: IntegerType): (16 | 32 | 64)[] {
  const narrowest = bits === 8 ? 16 : bits;
  return ([16, 32, 64] as const).filter((width) =>
    isSigned ? width >= narrowest : width === narrowest,
  );
}

/** Conversions of integers to others, without saturation. */
export const integerConversionEmitters: readonly Emitter[] = types.flatMap((to) =>
  types.flatMap((from) =>
    registersOf(to).map((width): Emitter => ({
      name: `cvt.${to.name}.${from.name}`,
      sources: 1,
      destinations: [width],
      emit: (body, source) => [converted(to, from, width, source, body.keep)],
    })),
  ),
);
