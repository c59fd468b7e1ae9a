import type { Effect, EffectOfForms, Evidence } from '../../isa/index.js';
import type { InstructionRequest, Unsupported } from './request.js';
import type { Slot } from './slot.js';
import type { WarpRegisters } from './warp-registers.js';

/** A warp instruction with its operands, in its place in a program. */
export interface WarpOperation {
  /**
   * The lanes that must execute it together: all that have not exited (`.aligned`), those of its mask (`.sync`,
   * the operand of this number), or whichever come (`activemask`).
   */
  readonly converged: 'warp' | { readonly maskOperand: number } | 'none';
  /** What the registers that it writes stand for. */
  readonly meaning: Effect;
  /** Whether it tells the tracer of the values that it makes; default: its results are lost where values are followed. */
  readonly tracesItself?: true;
  readonly writes: readonly Slot[];
  readonly reads: readonly Slot[];
  /**
   * Executes it.
   *
   * @param lanes bit l for lane l: the lanes that execute it, at least one
   * @returns the fault, in one line, as `lane 3 executes shfl.sync and is not in the mask 0x7`; null if
   * there is none
   */
  readonly execute: (registers: WarpRegisters, lanes: number) => string | null;
}

/** An instruction on the registers of all lanes of one warp, without effects outside of it. */
export interface WarpInstruction {
  /** Name, as that of a `VisibleInstruction`: `shfl.sync`, `mma.sync`. */
  readonly name: string;
  /** What the results of its forms stand for. */
  readonly meaning: EffectOfForms;
  readonly evidence: Evidence;
  readonly source: string;
  /** The operation, or the missing feature of this form. */
  readonly lower: (request: InstructionRequest) => WarpOperation | Unsupported;
}
