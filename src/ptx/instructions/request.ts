import type { Slot } from './slot.js';

/** A state space in which a variable has its address. */
export type AddressSpace = 'const' | 'global' | 'local' | 'param' | 'shared';

/** `[base + offset]`: names are resolved, the contents of the registers are not known. */
export interface AddressOperand {
  readonly kind: 'address';
  /** A register of 32 or 64 bits; null where the address is `offset`. */
  readonly base: Slot | null;
  /** Bytes, possibly negative; includes the address of the variable where `space` is not null. */
  readonly offset: number;
  /** The state space of the variable that it names (its address is one in that space); null where it names none. */
  readonly space: AddressSpace | null;
  /** The name of the register or the variable in the PTX; null for an absolute address. */
  readonly name: string | null;
  /** `{x, y}` of a tensor copy, and the offsets of im2col after them. */
  readonly coordinates: readonly (readonly ResolvedOperand[])[];
}

/** An operand of an instruction with its names resolved. */
export type ResolvedOperand =
  /** A register; special registers are registers too. */
  | { readonly kind: 'register'; readonly slot: Slot; readonly name: string }
  /**
   * An immediate, or the address of a variable as a value. `bits` of an integer is the number as written,
   * possibly negative; `bits` of `f32` and `f64` are in that format.
   */
  | {
      readonly kind: 'constant';
      readonly format: 'integer' | 'f32' | 'f64';
      readonly bits: bigint;
    }
  | AddressOperand
  | { readonly kind: 'vector'; readonly elements: readonly ResolvedOperand[] }
  /** `p|q`. */
  | { readonly kind: 'pair'; readonly first: ResolvedOperand; readonly second: ResolvedOperand }
  /** `!p`. */
  | { readonly kind: 'negated'; readonly operand: ResolvedOperand }
  /** `_`. */
  | { readonly kind: 'sink' };

/** An instruction of the text with its operands resolved, from which a row makes an operation. */
export interface InstructionRequest {
  /** The part before the first dot. */
  readonly opcode: string;
  /** The parts after the first dot, without their dots, with `::`. */
  readonly modifiers: readonly string[];
  readonly operands: readonly ResolvedOperand[];
  readonly line: number;
  /** The instruction's name in findings and counters: `line 120: ld.global.v4.b32`. */
  readonly site: string;
}

/** An instruction that is not supported in this form: the missing feature, as `a cache policy of 64 bits`. */
export interface Unsupported {
  readonly unsupported: string;
  /** The family of instructions of which none is supported, as `tcgen05`; messages name it once for all of them. */
  readonly family?: string;
}
