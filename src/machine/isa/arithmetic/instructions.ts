import { RequestError } from '../../../request-error.js';
import { allLanes, type LaneMask, type Operand } from '../../../isa/index.js';
import type { ArithmeticInstruction } from './instruction.js';
import { instructionsOfRows } from './rows.js';

/** Every arithmetic instruction of the machine; those that share a name differ in `operands`. */
export const arithmeticInstructions: readonly ArithmeticInstruction[] = instructionsOfRows();

const byName: ReadonlyMap<string, readonly ArithmeticInstruction[]> = new Map(
  arithmeticInstructions.map(({ name }) => [
    name,
    arithmeticInstructions.filter((instruction) => instruction.name === name),
  ]),
);

/** The most suggestions in a message. */
const mostSuggestions = 4;

/** The known mnemonics that share the opcode and most modifiers, or else the opcodes. */
function suggestion(name: string): string {
  const [opcode, ...modifiers] = name.split('.');
  const candidates = [...byName.keys()]
    .filter((known) => known.startsWith(`${opcode}.`))
    .map((known) => {
      const parts = known.split('.').slice(1);
      const missing = modifiers.filter((modifier) => !parts.includes(modifier)).length;
      const extra = parts.filter((part) => !modifiers.includes(part)).length;
      return { known, distance: missing + extra };
    })
    .sort((a, b) => a.distance - b.distance)
    .slice(0, mostSuggestions);
  if (candidates.length > 0)
    return `near it are ${candidates.map(({ known }) => known).join(', ')}`;
  const opcodes = [...new Set([...byName.keys()].map((known) => known.split('.')[0]))];
  return `the opcodes are ${opcodes.join(', ')}`;
}

/**
 * The arithmetic instruction of a PTX mnemonic with all its modifiers, as `fma.rn.f32`. `min` and
 * `max` share their mnemonics between arities: the one of two sources unless `operands` is three.
 * Throws a RequestError that names near mnemonics for an unknown one, and the arities for a wrong
 * one.
 */
export function findArithmetic(name: string, operands?: number): ArithmeticInstruction {
  const found = byName.get(name);
  if (found === undefined)
    throw new RequestError(`no arithmetic instruction '${name}'; ${suggestion(name)}`);
  if (operands === undefined) return found[0];
  const fitting = found.find((instruction) => instruction.operands === operands);
  if (fitting === undefined)
    throw new RequestError(
      `'${name}' does not take ${operands} sources; pass ${found.map((known) => known.operands).join(' or ')}`,
    );
  return fitting;
}

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
 * instructions whose operands advance by their `step` would: later ones read the results of earlier
 * ones. Registers of other lanes stay as they are; default all are active.
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
