import type { LaneInstruction, RegisterWidth } from '../instructions/index.js';

/**
 * Where a register of a warp lies among its registers: the lanes' values are contiguous from `offset` on. A value of
 * up to 32 bits takes 4 bytes (16 bits are zero-extended; a predicate is 0 or 2^32 − 1, so that it is a mask), one
 * of 64 bits 8 bytes. One of 128 bits is the 32 low halves, then the 32 high halves.
 */
export interface Slot {
  /** In bytes; a multiple of 128. */
  readonly offset: number;
  readonly width: RegisterWidth;
}

/** The same bits in every lane, not negative; all ones for a true predicate. */
export interface Constant {
  readonly bits: bigint;
  readonly width: RegisterWidth;
}

/** What an operation reads: a register (special registers have slots too), or a constant. */
export type Source = Slot | Constant;

/** The predicate under which an operation concerns a lane. */
export interface SlotGuard {
  readonly slot: Slot;
  readonly isNegated: boolean;
}

/** An instruction on registers with its operands: what runs in WebAssembly, or lane by lane. */
export interface LaneOperation {
  readonly instruction: LaneInstruction;
  readonly guard: SlotGuard | null;
  /**
   * Null for `_`. A destination may be wider than the instruction's; what is written is then zero-extended.
   */
  readonly destinations: readonly (Slot | null)[];
  /** May be wider than the instruction's sources, which are the low bits then. */
  readonly sources: readonly Source[];
  /** The line of the PTX text. */
  readonly line: number;
}

/**
 * A compiled stretch of operations: carries them out in order on the registers of one warp, for lanes of a mask.
 *
 * @param registers the byte at which the registers of the warp begin in the memory that it was compiled for
 * @param lanes bit l for lane l; the registers of other lanes stay as they are
 */
export type RunOperations = (registers: number, lanes: number) => void;
