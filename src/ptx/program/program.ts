import type {
  AddressSpace,
  LaneInstruction,
  ResolvedOperand,
  Slot,
  SlotGuard,
  Source,
  VisibleOperation,
  WarpOperation,
} from '../instructions/index.js';
import type { SpecialRegister } from './special-registers.js';

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
type WatchedLines = ReadonlyMap<number, readonly WatchedRegister[]>;

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

/** Facts about an instruction that all its items carry. */
interface Placed {
  readonly guard: SlotGuard | null;
  readonly line: number;
  /** Opcode and modifiers, as written. */
  readonly mnemonic: string;
  /** The instruction's name in findings and counters: `line 120: bar.sync`. */
  readonly site: string;
}

/** Operations on registers of one lane each, one after the other, which are compiled. */
export interface LaneStretch {
  readonly kind: 'lanes';
  readonly operations: readonly LaneOperation[];
  /** Offsets of the slots that it reads, and of those that it writes. */
  readonly reads: ReadonlySet<number>;
  readonly writes: ReadonlySet<number>;
}

/** A value that a call hands over: from a register of one function to a register of the other. */
export interface HandedOver {
  readonly from: Source;
  readonly to: Slot;
}

/** A member of a block between its beginning and its end. */
export type Item =
  | LaneStretch
  | (Placed & {
      readonly kind: 'warp';
      readonly operation: WarpOperation;
      /** The mask of the lanes that execute it together; null where it has none. */
      readonly mask: ResolvedOperand | null;
    })
  | (Placed & { readonly kind: 'visible'; readonly operation: VisibleOperation })
  | (Placed & {
      readonly kind: 'call';
      readonly callee: ProgramFunction;
      readonly arguments: readonly HandedOver[];
      readonly results: readonly HandedOver[];
    })
  /** A special register that counts (`%clock`) gets its value. */
  | (Placed & { readonly kind: 'count'; readonly slot: Slot })
  /** A lane that executes it ends: `trap`, `__assertfail`, `brkpt`. */
  | (Placed & { readonly kind: 'trap'; readonly reason: string });

/**
 * The way in which control leaves a block; targets are numbers of blocks, with the end of the function after the last.
 */
export type Terminator =
  | { readonly kind: 'goto'; readonly target: number }
  | (Placed & {
      readonly kind: 'branch';
      readonly guard: SlotGuard;
      readonly target: number;
      readonly next: number;
    })
  | (Placed & {
      readonly kind: 'table';
      readonly index: Source;
      readonly targets: readonly number[];
      readonly next: number;
    })
  /** Ends lanes whose guard holds for good; the others go on at `next`, which is null where there is no guard. */
  | (Placed & { readonly kind: 'exit'; readonly next: number | null });

/** Instructions that are all executed once the first is. */
export interface Block {
  readonly items: readonly Item[];
  readonly terminator: Terminator;
  /**
   * The block at which lanes that part at its end meet again: its immediate post-dominator. Lanes that a guard ends
   * for good do not count.
   */
  readonly join: number;
}

/** A kernel, or a function that it calls. */
export interface ProgramFunction {
  readonly name: string;
  readonly line: number;
  /** The blocks, the first of which is the beginning; `blocks.length` stands for the end. */
  readonly blocks: readonly Block[];
}

/** A variable of the module, in the `global` or the `const` space. */
export interface ModuleVariable {
  readonly name: string;
  readonly space: 'global' | 'const';
  readonly address: number;
  /** Contents before the kernel starts: zeros where the text has no initialiser. */
  readonly contents: Uint8Array;
  readonly line: number;
}

/** A register that holds a piece of the kernel's parameters from the start. */
export interface ParameterRegister {
  readonly slot: Slot;
  /** Offset in the parameter space, in bytes. */
  readonly offset: number;
  readonly bytes: 1 | 2 | 4 | 8 | 16;
  readonly isSigned: boolean;
}

/** A kernel's parameter as the text declares it. */
export interface KernelParameter {
  readonly name: string;
  readonly offset: number;
  readonly bytes: number;
  readonly alignment: number;
}

/** An executable kernel. */
export interface Program {
  readonly entry: ProgramFunction;
  /** The entry and every function that it calls. */
  readonly functions: readonly ProgramFunction[];
  /** Bytes of the registers of one warp. */
  readonly registerBytes: number;
  readonly specialRegisters: readonly { readonly slot: Slot; readonly register: SpecialRegister }[];
  readonly parameterRegisters: readonly ParameterRegister[];
  /** Registers that hold addresses of the CTA's own shared memory, in the addresses of its cluster. */
  readonly sharedAddresses: readonly { readonly slot: Slot; readonly address: number }[];
  readonly parameters: readonly KernelParameter[];
  /** Variables of the module that the kernel uses. */
  readonly variables: readonly ModuleVariable[];
  /** Static shared memory in bytes; dynamic shared memory begins there. */
  readonly staticSharedBytes: number;
  /** Local memory of one thread in bytes. */
  readonly localBytes: number;
  /** `.reqntid`, `.maxntid`, `.reqnctapercluster`, … of the entry, by name. */
  readonly directives: ReadonlyMap<string, readonly number[]>;
  /** The registers of the watched lines that have instructions. */
  readonly watched: WatchedLines;
  /** Pairs of a mul and an add without rounding modifiers that an assembler may contract into an fma. */
  readonly contractions: readonly { readonly line: number; readonly mnemonic: string }[];
}

/** Chooses the address of a variable of the module. */
export type PlaceVariable = (variable: {
  readonly name: string;
  readonly space: Extract<AddressSpace, 'global' | 'const'>;
  readonly bytes: number;
  readonly alignment: number;
}) => number;
