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
}

/** An instruction whose operands are pairs of registers, and that treats both words alike. */
export interface PairInstruction extends InstructionFacts {
  readonly width: 2;
  /** The operation on the low words and, independently, on the high words. */
  readonly element: WordInstruction;
}

/** An instruction from registers to a register, or from pairs of registers to a pair. */
export type ArithmeticInstruction = WordInstruction | PairInstruction;
