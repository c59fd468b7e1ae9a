import {
  type ArithmeticInstruction,
  arithmeticInstructions,
  type PairInstruction,
  type WordInstruction,
} from '../../../machine/index.js';
import type { LaneInstruction, LaneValue, RegisterWidth } from '../lane-instruction.js';
import { type FamilyFacts, row, wordRow } from './row.js';

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

function factsOf(instruction: ArithmeticInstruction): FamilyFacts {
  const { unit, laneOperations, width, operands, name } = instruction;
  const isCompared = width === 1 && !(/^(min|max)\./.test(name) && operands === 3);
  return {
    unit,
    laneOperations,
    evidence: isCompared ? 'silicon' : 'isa',
    source: isCompared
      ? 'an H200 with driver 580.159.04'
      : `PTX ISA: ${name.slice(0, name.indexOf('.'))}`,
  };
}

function wordInstructionRow(instruction: WordInstruction): LaneInstruction {
  const [destination, sources] = registersOf(instruction);
  const mask = destination === 16 ? 0xffff : 0xffffffff;
  const { name, evaluate } = instruction;
  const compute = (...values: number[]): number => (evaluate(...values) & mask) >>> 0;
  return wordRow(name, destination, sources, compute, factsOf(instruction));
}

/** The row of an instruction on pairs: a pair of registers of the machine is one register of 64 bits in PTX. */
function pairInstructionRow(instruction: PairInstruction): LaneInstruction {
  const { name, element, operands } = instruction;
  const evaluate = (...values: LaneValue[]): LaneValue => {
    const half = (shift: bigint): bigint =>
      BigInt(
        element.evaluate(...values.map((value) => Number((BigInt(value) >> shift) & 0xffffffffn))),
      );
    return (half(32n) << 32n) | half(0n);
  };
  const sources = Array.from({ length: operands }, (): RegisterWidth => 64);
  return row(name, { destinations: [64], sources, evaluate }, factsOf(instruction));
}

/**
 * The arithmetic instructions of the machine, which are compared with an H200, except those on pairs
 * of registers and those of three operands that need Blackwell.
 */
export const machineRows: readonly LaneInstruction[] = arithmeticInstructions
  .filter(({ name }) => !name.startsWith('mov.'))
  .map((instruction) =>
    instruction.width === 1 ? wordInstructionRow(instruction) : pairInstructionRow(instruction),
  );
