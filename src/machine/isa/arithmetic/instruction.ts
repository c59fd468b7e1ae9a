import { encode, formats } from '../../../formats/index.js';
import { type Operand, type RunLoop, warpLanes } from '../../../isa/index.js';
import { RequestError } from '../../../request-error.js';

/** Registers of a warp, and the number of each lane's. */
export interface WarpRegisters {
  /** Bit patterns, `[lane][register]`: every lane's are contiguous. */
  readonly words: Uint32Array<ArrayBuffer>;
  /** The same memory as fp32 numbers. */
  readonly floats: Float32Array;
  readonly registersPerLane: number;
}

/**
 * The registers in `words`, laid out `[lane][register]`, as a view: a write to one is seen in the
 * other. Throws a RequestError unless each of 32 lanes has equally many.
 */
export function registersOf(words: Uint32Array<ArrayBuffer>): WarpRegisters {
  const registersPerLane = words.length / warpLanes;
  if (!Number.isInteger(registersPerLane) || registersPerLane === 0)
    throw new RequestError(
      `${words.length} words are no registers of a warp; pass a positive multiple of ${warpLanes}, the registers of each lane in turn`,
    );
  const floats = new Float32Array(words.buffer, words.byteOffset, words.length);
  return { words, floats, registersPerLane };
}

/** New registers, all zero. Throws a RequestError for a number that is not a positive integer. */
export function createRegisters(registersPerLane: number): WarpRegisters {
  if (!Number.isInteger(registersPerLane) || registersPerLane <= 0)
    throw new RequestError(
      `a lane cannot have ${registersPerLane} registers; pass a positive integer`,
    );
  return registersOf(new Uint32Array(warpLanes * registersPerLane));
}

/**
 * The same register of each lane, or the pair that begins there, in every execution of a run. As a
 * destination that is a source too it accumulates over the run. Throws a RequestError for a register
 * that the lanes do not have.
 */
export function register(registers: WarpRegisters, index: number): Operand {
  return registerRun(registers, index, 0);
}

/**
 * One register, or pair of registers, per execution, from `first` on; `step` of them from one to
 * the next. Throws a RequestError for a register that the lanes do not have or a negative step.
 */
export function registerRun(registers: WarpRegisters, first: number, step = 1): Operand {
  const { words, floats, registersPerLane } = registers;
  if (!(Number.isInteger(first) && first >= 0 && first < registersPerLane))
    throw new RequestError(
      `no register ${first}: the fragment has ${registersPerLane} in each lane; pass an index from 0 to ${registersPerLane - 1}`,
    );
  if (!(Number.isInteger(step) && step >= 0))
    throw new RequestError(`a run cannot advance by ${step}; pass a step of 0 or more`);
  return { words, floats, first, laneStride: registersPerLane, step };
}

/**
 * The 32 bits of an immediate, from −2^31 to 2^32 − 1; a pair of registers takes them in both words.
 * Throws a RequestError for anything else.
 */
export function immediate(bits: number): Operand {
  if (!(Number.isInteger(bits) && bits >= -(2 ** 31) && bits < 2 ** 32))
    throw new RequestError(
      `${bits} is no 32-bit immediate; pass an integer from -2^31 to 2^32 - 1, or immediateFloat32 of a number`,
    );
  const words = Uint32Array.of(bits, bits);
  return { words, floats: new Float32Array(words.buffer), first: 0, laneStride: 0, step: 0 };
}

/** The bits of a number rounded to nearest fp32, as an immediate; a NaN is 0x7fffffff. */
export function immediateFloat32(value: number): Operand {
  return immediate(encode(formats.fp32, value));
}

/**
 * The pipelines of an SM that execute arithmetic, as Nsight Compute divides them: `fma` multiplies and
 * adds, integers' products too; `alu` compares, selects and works on bits and integers; `mufu` is the
 * special function unit; `conversion` changes formats.
 */
export type ArithmeticUnit = 'fma' | 'alu' | 'mufu' | 'conversion';

/** Facts about every arithmetic instruction. */
interface InstructionFacts {
  /** The mnemonic as PTX spells it, modifiers included; two arities may share one. */
  readonly name: string;
  readonly unit: ArithmeticUnit;
  /** Number of sources: registers, and the immediate of `lop3`. */
  readonly operands: 1 | 2 | 3 | 4;
  /** Results of the unit that one lane computes: two for a packed instruction. */
  readonly laneOperations: 1 | 2;
}

/** An instruction whose operands are 32-bit registers, predicates among them as 0 or 1. */
export interface WordInstruction extends InstructionFacts {
  readonly width: 1;
  /**
   * One lane's result from the bit patterns of its sources, all of them integers from 0 to 2^32 − 1,
   * in PTX's order; `operands` of them. A 16-bit source is the low half of its register, whose high
   * half is ignored; a 16-bit result leaves zeros there.
   */
  readonly evaluate: (...sources: number[]) => number;
  /** As `evaluate` over the registers of many lanes, faster. */
  readonly loop: RunLoop;
}

/** An instruction whose operands are pairs of registers, and that treats both words alike. */
export interface PairInstruction extends InstructionFacts {
  readonly width: 2;
  /** The operation on the low words and, independently, on the high words. */
  readonly element: WordInstruction;
}

/** An instruction from registers to a register, or from pairs of registers to a pair. */
export type ArithmeticInstruction = WordInstruction | PairInstruction;
