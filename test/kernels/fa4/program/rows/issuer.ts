import { findArithmetic, type InstructionCounts } from '../../../../../src/machine/index.js';
import {
  execute,
  type Operand,
  type WarpRegisters,
} from '../../../../machine/arithmetic/registers.js';

export {
  createRegisters,
  immediate,
  immediateFloat32,
  register,
  registerRun,
  registersOf,
  type Operand,
  type WarpRegisters,
} from '../../../../machine/arithmetic/registers.js';

/** Executes instructions on a warp's registers and counts them. */
export interface Issuer {
  /**
   * Executes an instruction `count` times over operands that advance by their steps; default once.
   * Throws a RequestError for a mnemonic that the machine does not have with as many operands.
   */
  readonly issue: (
    name: string,
    destination: Operand,
    sources: readonly Operand[],
    count?: number,
  ) => void;
  /** Counts an instruction that is carried out by other means. */
  readonly count: (name: string) => void;
  /** The counts since the last call. */
  readonly issued: () => InstructionCounts;
}

/** An issuer that has issued nothing. */
export function createIssuer(): Issuer {
  let counts: Record<string, number> = {};
  const add = (name: string, count: number): void => {
    counts[name] = (counts[name] ?? 0) + count;
  };
  return {
    issue: (name, destination, sources, count = 1) => {
      execute(findArithmetic(name, sources.length), destination, sources, count);
      add(name, count);
    },
    count: (name) => add(name, 1),
    issued: () => {
      const issued = counts;
      counts = {};
      return issued;
    },
  };
}

/**
 * Copies `count` registers of each lane. A compiler does this by naming registers, to pair them for a
 * packed instruction, so it is not counted.
 */
export function rename(
  source: WarpRegisters,
  from: number,
  target: WarpRegisters,
  to: number,
  count = 1,
): void {
  for (
    let at = from, end = to;
    at < source.words.length;
    at += source.registersPerLane, end += target.registersPerLane
  )
    for (let i = 0; i < count; i++) target.words[end + i] = source.words[at + i];
}
