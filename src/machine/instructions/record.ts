import type { Fragment, InstructionOf, Opcode } from '../isa/index.js';
import type { TimedUnit, UnitRates } from '../measure/index.js';
import type { MemoryArea, OperationKind } from '../ordering/index.js';
import type { Continuation, CtaState, MachineState, WarpState } from '../state.js';

/**
 * What a warp waits for before it executes an instruction. Registers that a tcgen05.ld fills are waited
 * for in any case: the machine knows them from what the instruction reads and writes.
 */
export interface Readiness<Op extends Opcode> {
  /** Whether the warp may execute it. */
  readonly isReady: (
    machine: MachineState,
    warp: WarpState,
    instruction: InstructionOf<Op>,
  ) => boolean;
  /** What it waits for while it is not ready, for a message about a deadlock. */
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

/** What an instruction reads, or what it writes. */
export interface Touched<Op extends Opcode> {
  /** Registers. */
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

/** What executes at once, in the issue slot of its warp. */
export interface SynchronousUnit {
  readonly name: TimedUnit;
  readonly operation: null;
}

/** The unit that performs what an instruction issues. */
export interface AsynchronousUnit<Op extends Opcode> {
  readonly name: TimedUnit;
  /** The kind of operation that it is there: what the order of others with it follows from. */
  readonly operation: OperationKind;
  /** Clocks of the unit that it takes. */
  readonly cycles: (instruction: InstructionOf<Op>, rates: UnitRates) => number;
  /** Clocks from then on until its result is there. */
  readonly latency: (rates: UnitRates) => number;
}

/** The operands by which a trace tells an instruction from others of the same place. */
export type InstructionDetails = Readonly<Record<string, string | number | boolean>>;

/** Everything that the machine knows of an instruction. There are no defaults: each record says it all. */
export interface InstructionRecord<Op extends Opcode> {
  readonly ready: Readiness<Op>;
  /** Whether counters and traces take it for a wait, before it or in its middle. */
  readonly isWait: boolean;
  /**
   * Carries it out, or issues what is performed later (`issue`). It reports what is illegal and tells
   * the tracker of what orders; of the registers and the memory that it touches the machine tells, from
   * `reads` and `writes`: when it has been executed, or when what it has issued is performed.
   *
   * @returns nothing when it is done; `refused` when it was illegal and touched nothing; or what the warp
   * has to wait for before it goes on. What then touches memory calls `touchMemory` itself.
   */
  readonly execute: (
    machine: MachineState,
    warp: WarpState,
    instruction: InstructionOf<Op>,
  ) => Continuation | 'refused' | void;
  readonly reads: Touched<Op>;
  readonly writes: Touched<Op>;
  readonly unit: SynchronousUnit | AsynchronousUnit<Op>;
  /** What a trace shows of its operands: shapes, columns of tensor memory, barriers by their offset. */
  readonly describe: (instruction: InstructionOf<Op>) => InstructionDetails;
}

/** The record of an instruction that issues what is performed later. */
export interface AsynchronousRecord<Op extends Opcode> extends InstructionRecord<Op> {
  readonly unit: AsynchronousUnit<Op>;
}

/** Records by name. */
export type InstructionRecords<Op extends Opcode> = {
  readonly [Name in Op]: InstructionRecord<Name>;
};

/** Of an instruction that never waits. */
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

/** Of an instruction that reads, or writes, neither registers nor the memory of a CTA. */
export const nothing: Touched<Opcode> = { registers: noRegisters, memory: noMemory };

/** Of an instruction that is carried out at once. */
export const issueSlot: SynchronousUnit = { name: 'issue', operation: null };

/** Of an instruction whose place in the program says it all. */
export const noDetails = (): InstructionDetails => ({});

/** What is true of every instruction that orders others, or concerns its warp alone, and moves nothing. */
export const movesNothing = { reads: nothing, writes: nothing, unit: issueSlot } as const;
