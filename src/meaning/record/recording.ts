import type { LaneOperation } from '../../ptx/program/index.js';
import type { Losses, RegisterFile, Trace, ValueFormat } from '../trace/index.js';

/** What the followers of operations share: the trace, what is lost, and the registers. */
export interface Recording {
  readonly trace: Trace;
  readonly losses: Losses;
  readonly file: RegisterFile;
  readonly bf16: ValueFormat;
  /** The values of which a word is the bitwise sum, by its number: sorting networks swap by it. */
  readonly xorSums: Map<number, readonly number[]>;
}

/** The place of an operation in the program, as findings name it. */
export function siteOf({ line, instruction }: Pick<LaneOperation, 'line' | 'instruction'>): string {
  return `line ${line}: ${instruction.name}`;
}
