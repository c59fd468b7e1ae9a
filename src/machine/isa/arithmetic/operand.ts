import { encode, formats } from '../../../formats/index.js';
import { RequestError } from '../../../request-error.js';
import { warpLanes } from '../lanes.js';

/** Registers of a warp, and how many each lane has. */
export interface WarpRegisters {
  /** Bit patterns, `[lane][register]`: every lane's are contiguous. */
  readonly words: Uint32Array<ArrayBuffer>;
  /** The same memory as fp32 numbers. */
  readonly floats: Float32Array;
  readonly registersPerLane: number;
}

/**
 * What an instruction reads or writes, for the k-th of a run of executions: in every lane the words
 * from `first + lane·laneStride + k·step·width` on, where width is the instruction's.
 */
export interface Operand {
  readonly words: Uint32Array;
  /** The same memory as fp32 numbers. */
  readonly floats: Float32Array;
  /** Words before lane 0's first one. */
  readonly first: number;
  /** Words from a lane to the next; 0 for what all lanes share. */
  readonly laneStride: number;
  /** Operands from one execution to the next; 0 for what all executions share. */
  readonly step: number;
}

/**
 * The registers in `words`, laid out `[lane][register]`, as a view: what is written to one is in the
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
 * From `first` on one register, or pair of registers, per execution; `step` of them from one to the
 * next. Throws a RequestError for a register that the lanes do not have or a negative step.
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

/** Words that all lanes and all executions share. */
function shared(words: readonly number[]): Operand {
  for (const word of words)
    if (!(Number.isInteger(word) && word >= -(2 ** 31) && word < 2 ** 32))
      throw new RequestError(
        `${word} is no 32-bit immediate; pass an integer from -2^31 to 2^32 - 1, or immediateFloat32 of a number`,
      );
  const patterns = Uint32Array.from(words);
  const floats = new Float32Array(patterns.buffer);
  return { words: patterns, floats, first: 0, laneStride: 0, step: 0 };
}

/**
 * The 32 bits of an immediate, from −2^31 to 2^32 − 1; a pair of registers takes them in both words.
 * Throws a RequestError for anything else.
 */
export function immediate(bits: number): Operand {
  return shared([bits, bits]);
}

/** The bits of a number rounded to nearest fp32, as an immediate; a NaN is 0x7fffffff. */
export function immediateFloat32(value: number): Operand {
  return immediate(encode(formats.fp32, value));
}

/** An immediate for a pair of registers, from the bits of each word. Throws as `immediate` does. */
export function immediatePair(low: number, high: number): Operand {
  return shared([low, high]);
}
