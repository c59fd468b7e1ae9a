import type { RegisterWidth } from '../../instructions/index.js';
import type { Expression, FunctionBody } from '../webassembly/function-body.js';

/**
 * The values of four lanes as vectors: one vector for up to 32 bits, 16 bits zero-extended and a predicate as a mask;
 * two vectors of two lanes each for 64 bits; for 128 bits those of the low halves, then those of the high halves.
 */
export type Vectors = readonly Expression[];

/** A source value of an emitter: expressions that are cheap to write twice. */
export interface SourceValue {
  readonly vectors: Vectors;
  /**
   * The bits that all lanes are known to have, not negative and below 2^width (a predicate is 0 or 1); null where they
   * are not known.
   */
  readonly constant: bigint | null;
}

/**
 * Writes an instruction on four lanes: the value of each destination. Lanes must not see each other, and arbitrary
 * bits in an inactive lane must do no harm. The expressions are written once each, one after another.
 */
export type Emit = (body: FunctionBody, ...sources: SourceValue[]) => readonly Vectors[];

/** An instruction that can be written in SIMD. */
export interface Emitter {
  readonly name: string;
  /** Number of sources: names of PTX do not always tell. */
  readonly sources: number;
  /** The registers of its results, where rows of the same name differ in them. */
  readonly destinations?: readonly RegisterWidth[];
  readonly emit: Emit;
}

/** A function that makes a vector from the vectors of up to four sources. */
export type VectorFunction = (
  body: FunctionBody,
  a: Expression,
  b: Expression,
  c: Expression,
  d: Expression,
) => Expression;

/** An emitter of one destination and of sources of up to 32 bits. */
export function onWords(name: string, sources: number, compute: VectorFunction): Emitter {
  return {
    name,
    sources,
    emit: (body, a, b = a, c = a, d = a) => [
      [compute(body, a.vectors[0], b.vectors[0], c.vectors[0], d.vectors[0])],
    ],
  };
}

/** An emitter that treats every vector of its sources alike: on 64-bit lanes, or where the lanes do not matter. */
export function onEachVector(name: string, sources: number, compute: VectorFunction): Emitter {
  return {
    name,
    sources,
    emit: (body, a, b = a, c = a, d = a) => [
      a.vectors.map((vector, i) => compute(body, vector, b.vectors[i], c.vectors[i], d.vectors[i])),
    ],
  };
}
