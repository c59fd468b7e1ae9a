import { RequestError } from '../../../request-error.js';
import { allLanes, type LaneMask } from '../lanes.js';
import type { ArithmeticInstruction } from './instruction.js';
import type { Operand } from './operand.js';

/** Throws a RequestError unless the registers of all executions exist, pairs beginning at even ones. */
function checkOperand(
  { name, width }: ArithmeticInstruction,
  { first, step, laneStride }: Operand,
  count: number,
): void {
  if (laneStride === 0) return;
  const end = first + ((count - 1) * step + 1) * width;
  if (end > laneStride)
    throw new RequestError(
      `${name} over ${count} executions reaches register ${end - 1}, but a lane has ${laneStride}; pass a smaller count or more registers`,
    );
  if (width === 2 && first % 2 !== 0)
    throw new RequestError(
      `${name} takes pairs of registers, which begin at an even one; pass ${first - 1} or ${first + 1} instead of ${first}`,
    );
}

function checkOperands(
  instruction: ArithmeticInstruction,
  destination: Operand,
  sources: readonly Operand[],
  count: number,
): void {
  const { name, operands } = instruction;
  if (sources.length !== operands)
    throw new RequestError(
      `${name} takes ${operands} sources but ${sources.length} were given; pass as many, in PTX's order`,
    );
  if (destination.laneStride === 0)
    throw new RequestError(`${name} cannot write to an immediate; pass registers as destination`);
  if (!(Number.isInteger(count) && count >= 1))
    throw new RequestError(`${name} cannot run ${count} times; pass a positive integer`);
  checkOperand(instruction, destination, count);
  for (const source of sources) checkOperand(instruction, source, count);
}

/** The low or the high words of an operand that is a pair, or a pair per execution. */
function wordsOfPair(operand: Operand, word: 0 | 1): Operand {
  return { ...operand, first: operand.first + word, step: 2 * operand.step };
}

/**
 * Executes an instruction `count` times in each active lane, as straight-line code of `count`
 * instructions whose operands advance by their `step` would: what one writes the next ones read.
 * Registers of other lanes stay as they are; default all are active.
 *
 * Throws a RequestError for a wrong number of sources, an immediate as destination, registers that
 * the lanes do not have and pairs that begin at an odd register.
 */
export function executeArithmeticRun(
  instruction: ArithmeticInstruction,
  destination: Operand,
  sources: readonly Operand[],
  count: number,
  activeLanes: LaneMask = allLanes,
): void {
  checkOperands(instruction, destination, sources, count);
  if (instruction.width === 1) {
    instruction.loop({ destination, sources, count, activeLanes });
    return;
  }
  // Pairs are aligned, so that no low word of one is the high word of another.
  for (const word of [0, 1] as const)
    instruction.element.loop({
      destination: wordsOfPair(destination, word),
      sources: sources.map((source) => wordsOfPair(source, word)),
      count,
      activeLanes,
    });
}

/** As `executeArithmeticRun`, once. */
export function executeArithmetic(
  instruction: ArithmeticInstruction,
  destination: Operand,
  sources: readonly Operand[],
  activeLanes: LaneMask = allLanes,
): void {
  executeArithmeticRun(instruction, destination, sources, 1, activeLanes);
}
