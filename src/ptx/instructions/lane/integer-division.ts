import { type IntegerType, integerTypes, type LaneInstruction } from '../../../isa/index.js';
import { integerRow } from './integer-row.js';
import type { FamilyFacts } from './row.js';

const { s16, s32, s64, u16, u32, u64 } = integerTypes;

function facts(instruction: string): FamilyFacts {
  return {
    meaning: 'decides',
    unit: 'alu',
    evidence: 'isa',
    source: `PTX ISA, Integer Arithmetic Instructions: ${instruction}; by zero as ptxas 12.8 has it for sm_90`,
  };
}

function rows(type: IntegerType): LaneInstruction[] {
  const sources = [type, type];
  return [
    integerRow(
      `div.${type.name}`,
      { result: type, sources, compute: (a, b) => (b === 0n ? -1n : a / b) },
      facts('div'),
    ),
    integerRow(
      `rem.${type.name}`,
      { result: type, sources, compute: (a, b) => (b === 0n ? -1n : a % b) },
      facts('rem'),
    ),
  ];
}

/**
 * Quotients rounded toward zero, and remainders with the sign of the dividend. For a divisor of zero, which PTX
 * leaves open, both are all ones: the result of the instructions that implement a division.
 */
export const integerDivisions: readonly LaneInstruction[] = [u16, u32, u64, s16, s32, s64].flatMap(
  rows,
);
