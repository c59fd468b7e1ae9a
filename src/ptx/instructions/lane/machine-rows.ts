import {
  type ArithmeticInstruction,
  arithmeticInstructions,
  type WordInstruction,
} from '../../../machine/index.js';
import { type LaneInstruction, registerOfType, type RegisterWidth } from '../../../isa/index.js';
import { type FamilyFacts, wordRow } from './row.js';

/** The register of the result, and of the sources. */
function registersOf({ name, operands }: WordInstruction): [RegisterWidth, RegisterWidth[]] {
  const types = name
    .split('.')
    .map(registerOfType)
    .filter((width) => width !== null);
  return [types[0], Array.from({ length: operands }, () => types[types.length - 1])];
}

function factsOf({ unit, laneOperations, name }: ArithmeticInstruction): FamilyFacts {
  return {
    meaning: /^cvt\.r[nzmp]i/.test(name) ? 'decides' : 'is',
    unit,
    laneOperations,
    evidence: 'silicon',
    source: 'an H200 with driver 580.159.04',
  };
}

function wordInstructionRow(instruction: WordInstruction): LaneInstruction {
  const [destination, sources] = registersOf(instruction);
  const mask = destination === 16 ? 0xffff : 0xffffffff;
  const { name, evaluate } = instruction;
  const compute = (...values: number[]): number => (evaluate(...values) & mask) >>> 0;
  return wordRow(name, destination, sources, compute, factsOf(instruction));
}

/** The conversions of the machine, which are compared with an H200. */
export const machineRows: readonly LaneInstruction[] = arithmeticInstructions.flatMap(
  (instruction) =>
    instruction.width === 1 && instruction.name.startsWith('cvt.')
      ? [wordInstructionRow(instruction)]
      : [],
);
