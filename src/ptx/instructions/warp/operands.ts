import { warpLanes } from '../../../machine/index.js';
import { slotsOf } from '../operands.js';
import type { Meaning } from '../../../isa/index.js';
import type { ResolvedOperand } from '../request.js';
import type { WarpOperation } from '../warp-instruction.js';
import {
  moveFromRegister,
  moveToRegister,
  type LaneValues,
  type WarpRegisters,
} from '../warp-registers.js';

/** Reads an operand as an unsigned number of up to 32 bits; a predicate as 0 or 1. */
type LaneReader = (registers: WarpRegisters, lane: number) => number;

/** Writes the low bits of a number of up to 32 bits; for a predicate, whether the number is not 0. */
export type LaneWriter = (registers: WarpRegisters, lane: number, value: number) => void;

/** The reader of an operand that is a register of up to 32 bits, a constant, or `!p`; null for others. */
export function readerOf(operand: ResolvedOperand | undefined): LaneReader | null {
  if (operand === undefined) return null;
  if (operand.kind === 'constant') {
    const value = Number(BigInt.asUintN(32, operand.bits));
    return () => value;
  }
  if (operand.kind === 'negated') {
    const inner = readerOf(operand.operand);
    return inner === null ? null : (registers, lane) => inner(registers, lane) ^ 1;
  }
  if (operand.kind !== 'register') return null;
  const { slot } = operand;
  if (slot.width === 64 || slot.width === 128) return null;
  if (slot.width === 'pred') return (registers, lane) => registers.words(slot)[lane] & 1;
  return (registers, lane) => registers.words(slot)[lane];
}

/** The writer of a destination of up to 32 bits, or of a wider one that is zero-extended; null for other operands. */
export function writerOf(operand: ResolvedOperand | undefined): LaneWriter | null {
  if (operand?.kind === 'sink') return () => {};
  if (operand?.kind !== 'register') return null;
  const { slot } = operand;
  if (slot.width === 128) return null;
  if (slot.width === 'pred')
    return (registers, lane, value) => {
      registers.words(slot)[lane] = value === 0 ? 0 : 0xffffffff;
    };
  if (slot.width === 64)
    return (registers, lane, value) => {
      const words = registers.words(slot);
      words[2 * lane] = value;
      words[2 * lane + 1] = 0;
    };
  const mask = slot.width === 16 ? 0xffff : 0xffffffff;
  return (registers, lane, value) => {
    registers.words(slot)[lane] = value & mask;
  };
}

/** Copies an operand's values of up to 32 bits, of all lanes. */
export type ValueReader = (registers: WarpRegisters, to: LaneValues) => void;

/** Copies values of up to 32 bits to a destination, for the lanes of a mask. */
export type ValueWriter = (registers: WarpRegisters, from: LaneValues, lanes: number) => void;

function wordOf({ offset, stride }: LaneValues, lane: number): number {
  return (offset + lane * stride) / 4;
}

/** The reader of all lanes' values of an operand, which moves those of a register; null where `readerOf` gives none. */
export function valueReaderOf(operand: ResolvedOperand | undefined): ValueReader | null {
  const read = readerOf(operand);
  if (read === null || operand === undefined) return null;
  if (operand.kind === 'register' && operand.slot.width !== 'pred')
    return (registers, to) => moveFromRegister(registers, operand.slot, to);
  return (registers, to) => {
    for (let lane = 0; lane < warpLanes; lane++)
      to.store.words[wordOf(to, lane)] = read(registers, lane);
  };
}

/** The writer of values to a destination, which moves them to a register; null where `writerOf` gives none. */
export function valueWriterOf(operand: ResolvedOperand | undefined): ValueWriter | null {
  const write = writerOf(operand);
  if (write === null) return null;
  if (operand?.kind === 'register' && operand.slot.width !== 'pred')
    return (registers, from, lanes) =>
      moveToRegister(registers, operand.slot, { ...from, isSigned: false }, lanes);
  return (registers, from, lanes) => {
    for (const lane of lanesOf(lanes)) write(registers, lane, from.store.words[wordOf(from, lane)]);
  };
}

/** The destinations of `d|p`, or of `d` alone. */
export function destinationsOf(operand: ResolvedOperand | undefined): readonly ResolvedOperand[] {
  if (operand === undefined) return [];
  return operand.kind === 'pair' ? [operand.first, operand.second] : [operand];
}

/** The lanes of a mask in ascending order. */
export function lanesOf(mask: number): number[] {
  return Array.from({ length: warpLanes }, (_, lane) => lane).filter(
    (lane) => ((mask >>> lane) & 1) === 1,
  );
}

/** A mask as findings write it. */
export function maskText(mask: number): string {
  return `0x${(mask >>> 0).toString(16).padStart(8, '0')}`;
}

/** The membermask of a `.sync` instruction, and what its results stand for. */
interface Group {
  /** The number of the operand that is the membermask. */
  readonly maskOperand: number;
  readonly readMask: LaneReader;
  readonly meaning: Meaning;
}

/**
 * The operation of a `.sync` instruction on each group of lanes with the same membermask: lanes of different masks do
 * not see each other. A lane that is not in its own mask, and a mask that names lanes which do not
 * execute the instruction, are findings (PTX ISA: the behaviour is undefined).
 *
 * @param execute what the lanes of one group do, a mask of them
 */
export function groupOperation(
  operands: readonly ResolvedOperand[],
  { maskOperand, readMask, meaning }: Group,
  execute: (registers: WarpRegisters, members: number) => void,
): WarpOperation {
  return {
    converged: { maskOperand },
    meaning,
    writes: slotsOf(operands.slice(0, 1)),
    reads: slotsOf(operands.slice(1)),
    execute: (registers, lanes) => {
      const groups = new Map<number, number>();
      let finding: string | null = null;
      for (const lane of lanesOf(lanes)) {
        const mask = readMask(registers, lane);
        if (((mask >>> lane) & 1) === 0)
          finding ??= `lane ${lane} is not in its membermask ${maskText(mask)}`;
        groups.set(mask, ((groups.get(mask) ?? 0) | (1 << lane)) >>> 0);
      }
      for (const [mask, members] of groups) {
        const missing = (mask & ~members) >>> 0;
        if (missing !== 0)
          finding ??= `the membermask ${maskText(mask)} names lanes that do not execute it: ${maskText(missing)}`;
      }
      for (const members of groups.values()) execute(registers, members);
      return finding;
    },
  };
}
