import { encode, formats } from '../../../src/formats/index.js';
import { warpLanes } from '../../../src/machine/index.js';
import type { ArithmeticInstruction } from '../../../src/machine/isa/arithmetic.js';

/** Registers of a warp, and the number of each lane's. */
export interface WarpRegisters {
  /** Bit patterns, `[lane][register]`: every lane's are contiguous. */
  readonly words: Uint32Array<ArrayBuffer>;
  /** The same memory as fp32 numbers. */
  readonly floats: Float32Array;
  readonly registersPerLane: number;
}

/** The registers in `words`, laid out `[lane][register]`, as a view. */
export function registersOf(words: Uint32Array<ArrayBuffer>): WarpRegisters {
  const floats = new Float32Array(words.buffer, words.byteOffset, words.length);
  return { words, floats, registersPerLane: words.length / warpLanes };
}

/** New registers, all zero. */
export function createRegisters(registersPerLane: number): WarpRegisters {
  return registersOf(new Uint32Array(warpLanes * registersPerLane));
}

/**
 * Registers, or pairs of registers, of every lane for several executions of an instruction: the first execution has
 * register `first`, and the next ones those that lie `step` registers or pairs further on.
 */
export interface Operand {
  readonly words: Uint32Array;
  readonly first: number;
  /** Words from a lane to the next; 0 for an immediate. */
  readonly laneStride: number;
  readonly step: number;
}

/** One register, or pair, for each execution, from `first` on. */
export function registerRun(registers: WarpRegisters, first: number, step = 1): Operand {
  return { words: registers.words, first, laneStride: registers.registersPerLane, step };
}

/** The same register, or pair, in every execution; as destination and source it accumulates. */
export function register(registers: WarpRegisters, index: number): Operand {
  return registerRun(registers, index, 0);
}

/** An immediate of 32 bits; a pair of registers takes them in both words. */
export function immediate(bits: number): Operand {
  return { words: Uint32Array.of(bits, bits), first: 0, laneStride: 0, step: 0 };
}

/** The bits of a number rounded to nearest fp32, as an immediate. */
export function immediateFloat32(value: number): Operand {
  return immediate(encode(formats.fp32, value));
}

/** Executes an instruction `count` times in each lane, word by word; later executions read the results of earlier ones. */
export function execute(
  instruction: ArithmeticInstruction,
  destination: Operand,
  sources: readonly Operand[],
  count: number,
): void {
  const { width } = instruction;
  const { evaluate } = instruction.width === 1 ? instruction : instruction.element;
  for (let lane = 0; lane < warpLanes; lane++)
    for (let n = 0; n < count; n++)
      for (let word = 0; word < width; word++) {
        const placeIn = ({ first, laneStride, step }: Operand): number =>
          first + lane * laneStride + n * step * width + word;
        destination.words[placeIn(destination)] = evaluate(
          ...sources.map((source) => source.words[placeIn(source)]),
        );
      }
}
