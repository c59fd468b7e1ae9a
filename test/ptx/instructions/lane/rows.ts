import {
  findLaneInstruction,
  type LaneInstruction,
  type LaneValue,
  type RegisterWidth,
} from '../../../../src/ptx/instructions/index.js';
import { operandsPerPattern, siliconPatterns } from './silicon-patterns.js';

/** The row of that name; throws where there is none. */
export function row(
  name: string,
  destinations?: readonly RegisterWidth[],
  sources = 2,
): LaneInstruction {
  const [opcode, ...modifiers] = name.split('.');
  const form = destinations === undefined ? undefined : { destinations, sources };
  const found = findLaneInstruction(opcode, modifiers, form);
  if (found === null) throw new Error(`no ${name}`);
  return found;
}

const patterns = siliconPatterns();

/** The operand of a pattern as a register of that width has it. */
export function operand(pattern: number, k: number, width: RegisterWidth): LaneValue {
  const bits = width === 'pred' ? 1 : Math.min(width, 64);
  const value = BigInt.asUintN(bits, patterns[operandsPerPattern * pattern + k]);
  return bits > 32 ? value : Number(value);
}

/** The operands of a pattern for a row. */
export function operandsOf({ sources }: LaneInstruction, pattern: number): LaneValue[] {
  return sources.map((width, k) => operand(pattern, k, width));
}

/** What tells rows apart. */
export const keyOf = ({ name, destinations, sources }: LaneInstruction) =>
  `${name} ${destinations.join()} ${sources.join()}`;
