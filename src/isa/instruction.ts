import type { Emit } from './vectors/index.js';

/**
 * Width of a lane's register in bits; `pred` is a predicate. A register of 8 bits is one of 16 (PTX
 * ISA, "Operand Size Exceeding Instruction-Type Size": only loads, stores and cvt know it).
 */
export type RegisterWidth = 'pred' | 16 | 32 | 64 | 128;

/**
 * The value of a lane's register: for widths up to 32 bits a number from 0 to 2^32 − 1 (a 16-bit register
 * from 0 to 65535, a predicate 0 or 1), for 64 and 128 bits a bigint that is not negative.
 */
export type LaneValue = number | bigint;

/** The basis for the semantics of an instruction. */
export type Evidence = 'silicon' | 'published' | 'isa';

/** The pipeline of an SM that executes an instruction, as Nsight Compute divides them. */
export type LaneUnit = 'fma' | 'alu' | 'mufu' | 'conversion' | 'fp64' | 'uniform';

/**
 * What a result stands for, by what its operands stand for besides their bits:
 * - `moves`: the bytes of operands, as they are;
 * - `is`: a real function of the operands, rounded;
 * - `chooses`: the operand whose bits won;
 * - `decides`: a decision about the operands: a comparison, the nearest integer;
 * - `confirmed`: a trick on bits, which means a real function only where the concrete value proves it: a sign by xor,
 *   2^k by adding to an exponent, bf16 widened by a shift;
 * - `loses`: nothing.
 */
export type Meaning = 'moves' | 'is' | 'chooses' | 'decides' | 'confirmed' | 'loses';

/**
 * What the values that an instruction leaves in registers and memory stand for. `none`: it neither makes nor moves a
 * value: barriers, fences, waits, hints, ends and jumps only say when something executes, or where. A result that the machine
 * decides, whatever the operands stand for, has the word `decides`: an allocated address, an elected lane, the state of a barrier.
 */
export type Effect = Meaning | 'none';

/** What the values that the forms of an instruction leave stand for: one word, or several where a form decides which. */
export type EffectOfForms = Effect | readonly [Effect, Effect, ...Effect[]];

/** An instruction on the registers of each lane alone: a lane's result depends only on its own registers. */
export interface LaneInstruction {
  /**
   * The PTX name with all modifiers: `fma.rn.ftz.f32`. A `mov` that packs is `mov.b32.pack2` and one that unpacks
   * `mov.b32.unpack2`, for 2, 4 or 8 elements, the lowest first.
   */
  readonly name: string;
  /**
   * Width of each destination; `setp` with `p|q`, an unpacking `mov` and `add.cc` (whose flag is a predicate) have
   * several.
   */
  readonly destinations: readonly RegisterWidth[];
  /** Width of each source in PTX's order. An immediate is a source like any other. A carry that is read comes last. */
  readonly sources: readonly RegisterWidth[];
  /**
   * The definition: the results of one lane, one for each destination, from sources in the form of `LaneValue`, in
   * the same form. The high bits of a register wider than the instruction's type are cut off before. Never throws:
   * division by zero gives the hardware's result.
   */
  readonly evaluate: (...sources: LaneValue[]) => LaneValue | readonly LaneValue[];
  /** The same on four lanes in WebAssembly; null where it runs lane by lane, by its definition. */
  readonly emit: Emit | null;
  readonly meaning: Meaning;
  readonly unit: LaneUnit;
  /** Number of results of the unit for a lane's execution: 2 for packed instructions. */
  readonly laneOperations: 1 | 2;
  readonly evidence: Evidence;
  /** The section of the PTX ISA, or the capture, that defines it. */
  readonly source: string;
}

/** An instruction of the manual with its modifiers chosen. */
export interface Variant extends LaneInstruction {
  /** Whether the machine has it among its instructions on words, or on pairs of words. */
  readonly isOfMachine: boolean;
  /** The instruction on each of the two words of a register of 64 bits; null where it is no pair of words. */
  readonly element: Variant | null;
}
