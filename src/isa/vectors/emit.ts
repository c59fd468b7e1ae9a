import { type Expression, type FunctionBody, i32x4, v128 } from '../webassembly/index.js';

/**
 * The values of four lanes as vectors: one vector for up to 32 bits, 16 bits zero-extended and a predicate as a mask;
 * two vectors of two lanes each for 64 bits; for 128 bits those of the low halves, then those of the high halves.
 */
export type Vectors = readonly Expression[];

/** A source value of an instruction that is written: expressions that are cheap to write twice. */
export interface SourceValue {
  readonly vectors: Vectors;
  /**
   * The bits that all lanes are known to have, not negative and below 2^width (a predicate is 0 or 1); null where they
   * are not known.
   */
  readonly constant: bigint | null;
}

/**
 * Writes an instruction on four lanes: the value of each destination, and of further ones that are left out. Lanes must
 * not see each other, and arbitrary bits in an inactive lane must do no harm. The expressions are written once each, one
 * after another.
 */
export type Emit = (body: FunctionBody, ...sources: SourceValue[]) => readonly Vectors[];

/** A function that makes a vector from the vectors of up to four sources. */
export type VectorFunction = (
  body: FunctionBody,
  a: Expression,
  b: Expression,
  c: Expression,
  d: Expression,
) => Expression;

/** The code of one destination from sources of up to 32 bits. */
export function onWords(compute: VectorFunction): Emit {
  return (body, a, b = a, c = a, d = a) => [
    [compute(body, a.vectors[0], b.vectors[0], c.vectors[0], d.vectors[0])],
  ];
}

/** The code that treats every vector of its sources alike: on 64-bit lanes, or where the lanes do not matter. */
export function onEachVector(compute: VectorFunction): Emit {
  return (body, a, b = a, c = a, d = a) => [
    a.vectors.map((vector, i) => compute(body, vector, b.vectors[i], c.vectors[i], d.vectors[i])),
  ];
}

/** The code of an instruction on words, for pairs of words in registers of 64 bits. */
export function onPairs(emit: Emit): Emit {
  return (body, ...sources) => [
    [0, 1].map((vector) => {
      const [[result]] = emit(
        body,
        ...sources.map(({ vectors }) => ({ vectors: [vectors[vector]], constant: null })),
      );
      return result;
    }),
  ];
}

/** The code of an instruction on the low 16 bits of words, for pairs of 16 bits in registers of 32 bits. */
export function onHalves(emit: Emit): Emit {
  const low = (a: Expression): Expression => v128.and(a, i32x4.splat(0xffff));
  const high = (a: Expression): Expression => i32x4.shrU(a, 16);
  return (body, ...sources) => {
    const half = (part: (a: Expression) => Expression): Expression => {
      const parts = sources.map(({ vectors }) => ({
        vectors: [body.keep(part(vectors[0]))],
        constant: null,
      }));
      return body.keep(emit(body, ...parts)[0][0]);
    };
    return [[v128.or(i32x4.shl(half(high), 16), half(low))]];
  };
}
