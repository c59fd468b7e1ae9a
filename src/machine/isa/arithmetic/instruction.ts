import { isActive, warpLanes, type LaneMask } from '../lanes.js';
import type { Operand } from './operand.js';

/**
 * The pipelines of an SM that execute arithmetic, as Nsight Compute divides them: `fma` multiplies and
 * adds, integers' products too; `alu` compares, selects and works on bits and integers; `mufu` is the
 * special function unit; `conversion` changes formats.
 */
export type ArithmeticUnit = 'fma' | 'alu' | 'mufu' | 'conversion';

/** What every arithmetic instruction says about itself. */
interface InstructionFacts {
  /** The mnemonic as PTX spells it, modifiers included; two arities may share one. */
  readonly name: string;
  readonly unit: ArithmeticUnit;
  /** How many sources it takes: registers, and the immediate of `lop3`. */
  readonly operands: 1 | 2 | 3 | 4;
  /** How many results of the unit one lane computes: two for a packed instruction. */
  readonly laneOperations: 1 | 2;
}

/** An instruction whose operands are 32-bit registers, predicates among them as 0 or 1. */
export interface WordInstruction extends InstructionFacts {
  readonly width: 1;
  /**
   * One lane's result from the bit patterns of its sources, all of them integers from 0 to 2^32 − 1,
   * in PTX's order; as many as `operands` says. A 16-bit source is the low half of its register,
   * whose high half is ignored; a 16-bit result leaves zeros there.
   */
  readonly evaluate: (...sources: number[]) => number;
  /** As `evaluate` over the registers of many lanes, faster. */
  readonly loop: RunLoop;
}

/** An instruction whose operands are pairs of registers, and that treats both words alike. */
export interface PairInstruction extends InstructionFacts {
  readonly width: 2;
  /** What it does to the low words and, independently, to the high words. */
  readonly element: WordInstruction;
}

/** An instruction from registers to a register, or from pairs of registers to a pair. */
export type ArithmeticInstruction = WordInstruction | PairInstruction;

/** `count` executions of one instruction, one after another, in each of the active lanes. */
export interface Run {
  readonly destination: Operand;
  readonly sources: readonly Operand[];
  readonly count: number;
  readonly activeLanes: LaneMask;
}

/**
 * Carries out a run on operands that have been checked; `step` counts words here. Lanes are
 * independent; within one an execution sees what earlier ones of the run wrote.
 */
export type RunLoop = (run: Run) => void;

/** The loop that evaluates word by word, for any instruction. */
export function evaluatingLoop(evaluate: (...sources: number[]) => number): RunLoop {
  return ({ destination, sources, count, activeLanes }) => {
    const [a, b = a, c = a, d = a] = sources;
    for (let lane = 0; lane < warpLanes; lane++) {
      if (!isActive(activeLanes, lane)) continue;
      let at = destination.first + lane * destination.laneStride;
      let i = a.first + lane * a.laneStride;
      let j = b.first + lane * b.laneStride;
      let k = c.first + lane * c.laneStride;
      let l = d.first + lane * d.laneStride;
      for (let n = 0; n < count; n++) {
        destination.words[at] = evaluate(a.words[i], b.words[j], c.words[k], d.words[l]);
        at += destination.step;
        i += a.step;
        j += b.step;
        k += c.step;
        l += d.step;
      }
    }
  };
}
