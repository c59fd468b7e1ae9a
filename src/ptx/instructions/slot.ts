import type { RegisterWidth } from '../../isa/index.js';

/**
 * The place of a register among the registers of a warp: the lanes' values are contiguous from `offset` on. A value
 * of up to 32 bits takes 4 bytes (16 bits are zero-extended; a predicate is 0 or 2^32 − 1, so that it is a mask),
 * one of 64 bits 8 bytes. One of 128 bits is the 32 low halves, then the 32 high halves.
 */
export interface Slot {
  /** Offset in bytes; a multiple of 128. */
  readonly offset: number;
  readonly width: RegisterWidth;
}

/** The same bits in every lane, not negative; all ones for a true predicate. */
export interface Constant {
  readonly bits: bigint;
  readonly width: RegisterWidth;
}

/** An operand that an operation reads: a register (special registers have slots too), or a constant. */
export type Source = Slot | Constant;

/** The predicate under which an operation takes part in a lane. */
export interface SlotGuard {
  readonly slot: Slot;
  readonly isNegated: boolean;
}

/** Bytes that a register of a width takes, for all lanes of a warp. */
export function slotBytes(width: RegisterWidth): number {
  return 32 * (width === 64 ? 8 : width === 128 ? 16 : 4);
}
