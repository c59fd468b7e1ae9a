import type { LaneInstruction, Slot, SlotGuard, Source } from '../instructions/index.js';

/** An instruction on registers with its operands, which runs in WebAssembly, or lane by lane. */
export interface LaneOperation {
  readonly instruction: LaneInstruction;
  readonly guard: SlotGuard | null;
  /** Null for `_`. A destination may be wider than the instruction's; the result is then zero-extended. */
  readonly destinations: readonly (Slot | null)[];
  /** Sources; they may be wider than the instruction's, which are then their low bits. */
  readonly sources: readonly Source[];
  /** The line of the PTX text. */
  readonly line: number;
}

/**
 * A compiled stretch of operations: executes them in order on the registers of one warp, for the lanes of a
 * mask.
 *
 * @param registers the byte at which the registers of the warp begin in the memory that it was compiled for
 * @param lanes bit l for lane l; the registers of other lanes are unchanged
 */
export type RunOperations = (registers: number, lanes: number) => void;
