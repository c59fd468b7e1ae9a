import { warpLanes } from '../../../machine/index.js';
import type { ResolvedOperand } from '../request.js';
import type { WarpRegisters } from '../warp-registers.js';

/** Reads an operand as an unsigned number of up to 32 bits; a predicate as 0 or 1. */
export type LaneReader = (registers: WarpRegisters, lane: number) => number;

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
