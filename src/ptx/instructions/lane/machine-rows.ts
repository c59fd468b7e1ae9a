import {
  type ArithmeticInstruction,
  arithmeticInstructions,
  type WordInstruction,
} from '../../../machine/index.js';
import type { LaneInstruction, Meaning, RegisterWidth } from '../../../isa/index.js';
import { type FamilyFacts, wordRow } from './row.js';

/** The registers of the types with which the names of the machine's instructions end. */
const widths: Readonly<Record<string, RegisterWidth>> = {
  pred: 'pred',
  bf16: 16,
  f16: 16,
  e4m3x2: 16,
  e5m2x2: 16,
  b32: 32,
  u32: 32,
  s32: 32,
  f32: 32,
  bf16x2: 32,
  f16x2: 32,
};

function typesOf(name: string): string[] {
  return name.split('.').filter((part) => part in widths);
}

/** The register of the result, and of the sources. */
function registersOf({ name, operands }: WordInstruction): [RegisterWidth, RegisterWidth[]] {
  const opcode = name.slice(0, name.indexOf('.'));
  const types = typesOf(name);
  const last = widths[types[types.length - 1]];
  const sources = Array.from({ length: operands }, () => last);
  if (opcode === 'setp')
    return ['pred', [...sources.slice(0, 2), ...(operands === 3 ? ['pred' as const] : [])]];
  if (opcode === 'selp') return [last, [last, last, 'pred']];
  return [widths[types[0]], sources];
}

/** What the results of opcodes stand for; of others real functions of the operands. */
const meanings: Readonly<Record<string, Meaning>> = {
  setp: 'decides',
  selp: 'chooses',
  min: 'chooses',
  max: 'chooses',
  ...Object.fromEntries(
    ['shl', 'shr', 'shf', 'and', 'or', 'xor', 'not', 'lop3', 'bfe', 'bfi', 'prmt'].map((opcode) => [
      opcode,
      'confirmed',
    ]),
  ),
};

function factsOf({ unit, laneOperations, name }: ArithmeticInstruction): FamilyFacts {
  return {
    meaning: meanings[name.slice(0, name.indexOf('.'))] ?? 'is',
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

/** The arithmetic instructions of the machine that are in no row of src/isa, which are compared with an H200. */
export const machineRows: readonly LaneInstruction[] = arithmeticInstructions.flatMap(
  (instruction) =>
    instruction.width === 1 && !instruction.name.startsWith('mov.')
      ? [wordInstructionRow(instruction)]
      : [],
);
