import type { RegisterWidth } from '../../../isa/index.js';
import {
  type Emit,
  onEachVector as eachVector,
  onWords as words,
  type VectorFunction,
} from '../../../isa/vectors/index.js';

export type { SourceValue, VectorFunction, Vectors } from '../../../isa/vectors/index.js';

/** An instruction that can be written in SIMD. */
export interface Emitter {
  readonly name: string;
  /** Number of sources: names of PTX do not always tell. */
  readonly sources: number;
  /** The registers of its results, where rows of the same name differ in them. */
  readonly destinations?: readonly RegisterWidth[];
  readonly emit: Emit;
}

/** An emitter of one destination and of sources of up to 32 bits. */
export function onWords(name: string, sources: number, compute: VectorFunction): Emitter {
  return { name, sources, emit: words(compute) };
}

/** An emitter that treats every vector of its sources alike: on 64-bit lanes, or where the lanes do not matter. */
export function onEachVector(name: string, sources: number, compute: VectorFunction): Emitter {
  return { name, sources, emit: eachVector(compute) };
}
