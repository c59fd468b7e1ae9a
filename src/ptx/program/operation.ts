import type { LaneInstruction, Slot, SlotGuard, Source } from '../instructions/index.js';

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
