import type { PatternArray } from '../formats/index.js';
import { type ByteStore, tagsOf } from './memory/index.js';

/** Four arrays of one shape: the planes of tags of a matrix's elements (`TagPlanes`). */
export type ElementTags = readonly [PatternArray, PatternArray, PatternArray, PatternArray];

/** An operand of a product: [rows][k] patterns, as they were before a negation, and their tags. */
export interface TracedOperand {
  /** Format of the elements: `bf16`, `fp16`, `e4m3`, `tf32`, `s8`, `fp64`, …. */
  readonly format: string;
  readonly patterns: PatternArray | Float64Array;
  /** Of elements of 4 bits, those of the byte that has two of them; null where tags cannot be told apart. */
  readonly tags: ElementTags | null;
  readonly isNegated: boolean;
  /** Null where there are none. */
  readonly scales: TracedScales | null;
}

/** Scale factors of an operand's blocks along k, [rows][k / block]. */
export interface TracedScales {
  readonly patterns: PatternArray;
  /** Null where the hardware's partitions have factors of different origin. */
  readonly tags: ElementTags | null;
  readonly format: string;
  readonly block: number;
}

/** A product D = A·B + C that a tensor core has computed. */
export interface TracedProduct {
  readonly mnemonic: string;
  /** The place in the program: `line 120: mma.sync`. */
  readonly site: string;
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly a: TracedOperand;
  /** [n][k]. */
  readonly b: TracedOperand;
  /** C, [m][n], in D's format: `fp32`, `fp16`, `s32` or `fp64`; null where D starts from zero. */
  readonly c: Pick<TracedOperand, 'patterns' | 'tags'> | null;
  readonly accumulator: string;
  /** D, [m][n]. */
  readonly d: PatternArray | Float64Array;
}

/** Values in a store, from a byte on. */
export interface TracedPlace {
  readonly store: ByteStore;
  readonly byte: number;
}

/** An operation on values in memory: an atomic one, or one of a bulk reduction. */
export interface TracedUpdate {
  readonly mnemonic: string;
  readonly site: string;
  /** `add`, `min`, … and the type of the elements: `f32`, `bf16x2`, …. */
  readonly operation: string;
  readonly type: string;
  /** What lay there before, from byte 0 on. */
  readonly old: ByteStore;
  readonly operand: TracedPlace;
  readonly compared: TracedPlace | null;
  /** What lies there now. */
  readonly next: TracedPlace;
  readonly bytes: number;
}

/**
 * Follows what the values of a run stand for: the machine tells it of each operation that makes values from others. Whatever
 * only moves bytes takes their tags along by itself.
 */
export interface ValueTracer {
  /** Notes a product. Returns the planes of D's tags, [m][n] words each; null where no element has one. */
  readonly product: (
    product: TracedProduct,
  ) => readonly [Uint32Array, Uint32Array, Uint32Array, Uint32Array] | null;
  /** Notes that nobody has written a memory yet: what is read of it stands for nothing. */
  readonly unwritten: (store: ByteStore) => void;
  /** Notes an update, and sets the tags of `next`. */
  readonly update: (update: TracedUpdate) => void;
  /** Notes that an instruction leaves bytes of which nothing is known but that they come from others: lost, where those have tags. */
  readonly lose: (
    from: TracedPlace & { readonly bytes: number },
    to: TracedPlace & { readonly bytes: number },
    site: string,
  ) => void;
}

/** A plane of a store's tags, or the store itself. */
export type PlaneOf = (store: ByteStore) => ByteStore;

/** The tags of elements that are gathered as their patterns are: `gather` fills an array from one plane of each store. */
export function gatherTags<Patterns extends PatternArray>(
  create: () => Patterns,
  gather: (planeOf: PlaneOf, target: Patterns) => void,
): [Patterns, Patterns, Patterns, Patterns] {
  const plane = (index: 0 | 1 | 2 | 3): Patterns => {
    const target = create();
    gather((store) => tagsOf(store)[index], target);
    return target;
  };
  return [plane(0), plane(1), plane(2), plane(3)];
}
