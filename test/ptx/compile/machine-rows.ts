import type {
  LaneInstruction,
  LaneValue,
  RegisterWidth,
} from '../../../src/ptx/instructions/index.js';
import {
  arithmeticInstructions,
  type WordInstruction,
} from '../../../src/machine/isa/arithmetic/index.js';

function sourceWidths({ name, operands }: WordInstruction): RegisterWidth[] {
  return Array.from({ length: operands }, (_, i): RegisterWidth => {
    if (name.endsWith('.pred')) return 'pred';
    if (/^cvt\.f32\.b?f16$/.test(name)) return 16;
    return /^(selp|setp)\./.test(name) && i === 2 ? 'pred' : 32;
  });
}

function resultWidth(name: string): RegisterWidth {
  return /^cvt\..*\.(b?f16|e4m3x2|e5m2x2)\.f32$/.test(name) ? 16 : 32;
}

/** The machine's instructions on words, as rows of lane instructions. */
export const machineRows: readonly LaneInstruction[] = arithmeticInstructions
  .filter((instruction) => instruction.width === 1)
  .map((instruction): LaneInstruction => {
    const { name, evaluate } = instruction;
    const isPredicate = name.startsWith('setp.') || name.endsWith('.pred');
    return {
      name,
      destinations: [isPredicate ? 'pred' : resultWidth(name)],
      sources: sourceWidths(instruction),
      evaluate: (...sources: LaneValue[]) => evaluate(...sources.map(Number)),
      unit: 'alu',
      laneOperations: 1,
      evidence: 'isa',
      source: 'src/machine/isa/arithmetic',
    };
  });
