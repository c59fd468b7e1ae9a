import type { InstructionRequest, Slot, SlotGuard } from '../instructions/index.js';
import type { PtxInstruction } from '../syntax/index.js';
import type { ParameterRegister, WatchedRegister } from './program.js';
import type { ParameterPieces, SlotAllocator } from './parameter-pieces.js';
import { findBinding, type Binding, type Scope } from './scope.js';
import { specialRegisters, type SpecialRegister } from './special-registers.js';
import type { FindRow, InstructionTables, UnsupportedCollector } from './tables.js';

/** State that the functions of a program share while they are lowered. */
export interface ProgramLowering {
  readonly tables: InstructionTables;
  readonly findRow: FindRow;
  readonly slots: SlotAllocator;
  readonly unsupported: UnsupportedCollector;
  /** Registers of the kernel's parameters, by offset and type. */
  readonly parameterRegisters: Map<string, ParameterRegister>;
  /** Special registers that the kernel uses, by name. */
  readonly specials: Map<string, { readonly binding: Binding; readonly register: SpecialRegister }>;
  /**
   * Registers for addresses of shared memory, by address; null where CTAs form no clusters, so that an address is
   * a constant.
   */
  readonly sharedAddresses: Map<number, Slot> | null;
  /** Lines whose registers are watched, filled during the lowering. */
  readonly watched: Map<number, WatchedRegister[]>;
  /** Parameters and results of each function, in order. */
  readonly interfaces: ReadonlyMap<string, FunctionInterface>;
}

/** The places from which a function takes its arguments, and in which it leaves its results. */
export interface FunctionInterface {
  readonly scope: Scope;
  readonly parameters: readonly FormalParameter[];
  readonly returns: readonly FormalParameter[];
}

/** A parameter seen from the function: a register (`.reg`), or the parts of a `.param`. */
export type FormalParameter = Extract<Binding, { kind: 'register' } | { kind: 'parameter' }>;

/** The parameters of a call, before it is known which parts of them the other side uses. */
export interface CallOperands {
  readonly arguments: readonly CallOperand[];
  readonly results: readonly CallOperand[];
}

/** An operand of a call: a value, or a parameter by its parts. */
export type CallOperand =
  | { readonly kind: 'parameter'; readonly pieces: ParameterPieces }
  | {
      readonly kind: 'value';
      readonly operand: InstructionRequest['operands'][number];
    };

/** An instruction with its scope, and the facts that all its items carry. */
export interface ScopedInstruction {
  readonly instruction: PtxInstruction;
  readonly scope: Scope;
  readonly guard: SlotGuard | null;
  readonly line: number;
  readonly mnemonic: string;
  readonly site: string;
}

/** Finds the meaning of a name: a name of a scope, or a special register; null if there is none. */
export function resolveName(program: ProgramLowering, scope: Scope, name: string): Binding | null {
  const known = findBinding(scope, name, program.slots) ?? program.specials.get(name)?.binding;
  if (known !== undefined) return known;
  const register = specialRegisters.get(name);
  if (register === undefined) return null;
  const binding: Binding = { kind: 'register', slot: program.slots.allocate(register.width) };
  program.specials.set(name, { binding, register });
  return binding;
}

/** The register that holds an address of the CTA's own shared memory. */
export function sharedAddress(
  { slots }: ProgramLowering,
  addresses: Map<number, Slot>,
  address: number,
): Slot {
  let slot = addresses.get(address);
  if (slot === undefined) {
    slot = slots.allocate(64);
    addresses.set(address, slot);
  }
  return slot;
}
