import type { InstructionOf, Opcode } from '../instruction.js';
import type { Continuation, MachineState, WarpState } from '../state.js';

/** What the machine knows of an instruction. */
export interface InstructionDefinition<Op extends Opcode> {
  /**
   * Whether a warp whose next instruction it is may execute it; default always. (Instructions with
   * registers that a tcgen05.ld fills wait for it in any case.)
   */
  readonly isReady?: (
    machine: MachineState,
    warp: WarpState,
    instruction: InstructionOf<Op>,
  ) => boolean;
  /** What it waits for while it is not ready, for a message about a deadlock. */
  readonly waitsFor?: (
    machine: MachineState,
    warp: WarpState,
    instruction: InstructionOf<Op>,
  ) => string;
  /** The clock from which on it is ready, once it is; default 0. */
  readonly readyTime?: (
    machine: MachineState,
    warp: WarpState,
    instruction: InstructionOf<Op>,
  ) => number;
  /** Carries it out; what it returns has to be waited for before the warp goes on. */
  readonly execute: (
    machine: MachineState,
    warp: WarpState,
    instruction: InstructionOf<Op>,
  ) => Continuation | void;
}

/** Definitions by name. */
export type InstructionDefinitions<Op extends Opcode> = {
  readonly [Name in Op]: InstructionDefinition<Name>;
};
