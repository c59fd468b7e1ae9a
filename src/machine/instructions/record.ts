import type { Effect, Fragment, InstructionOf, Opcode } from '../isa/index.js';
import type { TimedUnit, UnitRates } from '../measure/index.js';
import type { MemoryArea, OperationKind } from '../ordering/index.js';
import type { Continuation, CtaState, MachineState, WarpState } from '../state.js';

/**
 * Conditions under which a warp executes an instruction. Registers that a tcgen05.ld fills are waited
 * for in any case: the machine finds them among the registers that the instruction reads and writes.
 */
export interface Readiness<Op extends Opcode> {
  /** Whether the warp may execute it. */
  readonly isReady: (
    machine: MachineState,
    warp: WarpState,
    instruction: InstructionOf<Op>,
  ) => boolean;
  /** The thing that it waits for while it is not ready, for a message about a deadlock. */
  readonly waitsFor: (
    machine: MachineState,
    warp: WarpState,
    instruction: InstructionOf<Op>,
  ) => string;
  /** The clock from which on it is ready, once it is. */
  readonly readyTime: (
    machine: MachineState,
    warp: WarpState,
    instruction: InstructionOf<Op>,
  ) => number;
}

/** Takes note of an area of memory. */
export type VisitArea = (area: MemoryArea) => void;

/** Registers and memory that an instruction reads, or that it writes. */
export interface Touched<Op extends Opcode> {
  readonly registers: (instruction: InstructionOf<Op>) => readonly Fragment[];
  /**
   * Areas of shared, tensor and global memory, at the time at which the instruction acts. (ld.global and st.global, whose
   * memory has no addresses, are not followed.)
   */
  readonly memory: (
    machine: MachineState,
    cta: CtaState,
    instruction: InstructionOf<Op>,
    visit: VisitArea,
  ) => void;
}

/** The unit of an instruction that executes at once, in the issue slot of its warp. */
export interface SynchronousUnit {
  readonly name: TimedUnit;
  readonly operation: null;
}

/** The unit that performs the operation that an instruction issues. */
interface AsynchronousUnit<Op extends Opcode> {
  readonly name: TimedUnit;
  /** The kind of operation that the unit performs; its order with other operations follows from it. */
  readonly operation: OperationKind;
  /** Clocks of the unit that it takes. */
  readonly cycles: (instruction: InstructionOf<Op>, rates: UnitRates) => number;
  /** Clocks from then on until its result is available. */
  readonly latency: (rates: UnitRates) => number;
}

/** Operands by which a trace distinguishes instructions of the same place. */
export type InstructionDetails = Readonly<Record<string, string | number | boolean>>;

/** All properties of an instruction that the machine uses. There are no defaults: each record states them all. */
export interface InstructionRecord<Op extends Opcode> {
  readonly ready: Readiness<Op>;
  /** Whether counters and traces count it as a wait, before it or in its middle. */
  readonly isWait: boolean;
  /**
   * Carries it out, or issues an operation that is performed later (`issue`). It reports illegal uses and
   * tells the tracker about ordering; the machine reports the registers and the memory that it touches,
   * from `reads` and `writes`: when it has been executed, or when the operation that it issued is
   * performed.
   *
   * @returns nothing when it is done; `refused` when it was illegal and touched nothing; or the wait that
   *   the warp has to finish before it goes on. Code that then touches memory calls `touchMemory` itself.
   */
  readonly execute: (
    machine: MachineState,
    warp: WarpState,
    instruction: InstructionOf<Op>,
  ) => Continuation | 'refused' | void;
  readonly reads: Touched<Op>;
  readonly writes: Touched<Op>;
  readonly unit: SynchronousUnit | AsynchronousUnit<Op>;
  /**
   * What the values that it leaves in registers and memory stand for, by the values that it reads. Of an atomic operation,
   * that is what it leaves in memory: the register gets the bytes that lay there, moved.
   */
  readonly meaning: Effect | ((instruction: InstructionOf<Op>) => Effect);
  /** The operands that a trace shows: shapes, columns of tensor memory, barriers by their offset. */
  readonly describe: (instruction: InstructionOf<Op>) => InstructionDetails;
}

/** The record of an instruction that issues an operation performed later. */
export interface AsynchronousRecord<Op extends Opcode> extends InstructionRecord<Op> {
  readonly unit: AsynchronousUnit<Op>;
}

/** Records by name. */
export type InstructionRecords<Op extends Opcode> = {
  readonly [Name in Op]: InstructionRecord<Name>;
};

/** Readiness of an instruction that never waits. */
export const alwaysReady: Readiness<Opcode> = {
  isReady: () => true,
  waitsFor: () => 'nothing',
  readyTime: () => 0,
};

const noFragments: readonly Fragment[] = [];

/** No registers. */
export const noRegisters = (): readonly Fragment[] => noFragments;

/** No memory of a CTA. */
export const noMemory = (): void => undefined;

/** Accesses of an instruction that reads, or writes, neither registers nor the memory of a CTA. */
export const nothing: Touched<Opcode> = { registers: noRegisters, memory: noMemory };

/** The unit of an instruction that is carried out at once. */
export const issueSlot: SynchronousUnit = { name: 'issue', operation: null };

/** Details of an instruction that its place in the program fully identifies. */
export const noDetails = (): InstructionDetails => ({});

/** Properties of every instruction that orders others, or concerns its warp alone, and moves nothing. */
export const movesNothing = {
  reads: nothing,
  writes: nothing,
  unit: issueSlot,
  meaning: 'none',
} as const;
