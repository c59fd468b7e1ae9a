import type { Evidence } from './lane-instruction.js';
import type { InstructionRequest, Unsupported } from './request.js';
import type { Slot } from './slot.js';
import type { WarpRegisters } from './warp-registers.js';

/** A warp instruction with its operands, as it stands in a program. */
export interface WarpOperation {
  /**
   * The lanes that must execute it together: all that have not exited (`.aligned`), those of its mask (`.sync`,
   * the operand of this number), or whichever come (`activemask`).
   */
  readonly converged: 'warp' | { readonly maskOperand: number } | 'none';
  readonly writes: readonly Slot[];
  readonly reads: readonly Slot[];
  /**
   * Carries it out.
   *
   * @param lanes bit l for lane l: those that execute it, at least one
   * @returns what is wrong, in one line, as `lane 3 executes shfl.sync and is not in the mask 0x7`; null if
   * nothing is
   */
  readonly execute: (registers: WarpRegisters, lanes: number) => string | null;
}

/** An instruction that concerns the registers of all lanes of one warp, and that nobody else sees. */
export interface WarpInstruction {
  /** As that of a `VisibleInstruction`: `shfl.sync`, `mma.sync`. */
  readonly name: string;
  readonly evidence: Evidence;
  readonly source: string;
  /** The operation, or what is missing for this form. */
  readonly lower: (request: InstructionRequest) => WarpOperation | Unsupported;
}
