import type { Program } from '../program/index.js';

/** An instruction by which CTAs may meet. */
export interface CtaMeeting {
  readonly line: number;
  readonly mnemonic: string;
}

/** Opcodes of atomic operations in any memory, unless a modifier names shared memory. */
const atomicOpcodes: readonly string[] = ['atom', 'red', 'multimem'];

/** Modifiers of accesses that others may wait for. */
const strongModifiers: readonly string[] = ['volatile', 'mmio', 'relaxed', 'acquire', 'release'];

/** Whether an instruction is of those by which CTAs hand one another values, order or work. */
function isMeeting(mnemonic: string): boolean {
  const [opcode, ...modifiers] = mnemonic.split('.');
  if (opcode === 'clusterlaunchcontrol') return true;
  if (modifiers.some((modifier) => modifier.startsWith('shared')))
    // Bulk reductions name the memory that they read as well.
    return opcode === 'cp' && modifiers.includes('reduce') && modifiers.includes('global');
  if (atomicOpcodes.includes(opcode)) return true;
  const isStrong = modifiers.some((modifier) => strongModifiers.includes(modifier));
  return isStrong && (opcode === 'ld' || opcode === 'st') && !modifiers.includes('cta');
}

/**
 * The first instruction by which CTAs of a grid may meet, as the text has it: an atomic operation on global memory, a strong
 * access to it, or the cancelling of launches; null for none. Where there is none, CTAs can still race.
 */
export function findCtaMeeting({ functions }: Pick<Program, 'functions'>): CtaMeeting | null {
  const all = functions.flatMap(({ blocks }) => blocks.flatMap(({ items }) => items));
  const found = all.flatMap((item): readonly CtaMeeting[] =>
    item.kind === 'visible' && isMeeting(item.mnemonic)
      ? [{ line: item.line, mnemonic: item.mnemonic }]
      : [],
  );
  return found.reduce<CtaMeeting | null>(
    (first, one) => (first === null || one.line < first.line ? one : first),
    null,
  );
}
