import type { Slot } from '../instructions/index.js';

/** A register of an instruction that is watched. */
export interface WatchedRegister {
  /** Name in the PTX. */
  readonly name: string;
  readonly slot: Slot;
  /** The type that the instruction gives it: `f32`, `s64`, `pred`; `b32` and its like are the bits alone. */
  readonly type: string;
  /** Whether it is the predicate of the guard. */
  readonly isGuard: boolean;
}

/** The registers of the instructions of a line, watched before the first of them. */
export type WatchedLines = ReadonlyMap<number, readonly WatchedRegister[]>;
