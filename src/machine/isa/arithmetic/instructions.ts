import { RequestError } from '../../../request-error.js';
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
