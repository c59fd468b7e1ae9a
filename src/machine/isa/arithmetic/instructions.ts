import { RequestError } from '../../../request-error.js';
import { bitInstructions, wideMoveInstructions } from './bit-instructions.js';
import { comparisonInstructions } from './comparison-instructions.js';
import {
  conversionInstructions,
  integerConversionInstructions,
} from './conversion-instructions.js';
import {
  float32ExtremumInstructions,
  float32SignInstructions,
  packedInstructions,
  roundedInstructions,
} from './float32-instructions.js';
import type { ArithmeticInstruction } from './instruction.js';
import { integerInstructions } from './integer-instructions.js';
import { specialFunctionInstructions } from './special-function-instructions.js';

/** Every arithmetic instruction of the machine; those that share a name differ in `operands`. */
export const arithmeticInstructions: readonly ArithmeticInstruction[] = [
  ...roundedInstructions,
  ...packedInstructions,
  ...float32ExtremumInstructions,
  ...float32SignInstructions,
  ...specialFunctionInstructions,
  ...conversionInstructions,
  ...integerConversionInstructions,
  ...integerInstructions,
  ...bitInstructions,
  ...wideMoveInstructions,
  ...comparisonInstructions,
];

const byName: ReadonlyMap<string, readonly ArithmeticInstruction[]> = new Map(
  arithmeticInstructions.map(({ name }) => [
    name,
    arithmeticInstructions.filter((instruction) => instruction.name === name),
  ]),
);

/** Suggestions in a message. */
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
 * The arithmetic instruction of a PTX mnemonic with all its modifiers, as `fma.rn.f32`. Of the `min`
 * and `max` that share theirs, the one of two sources unless `operands` asks for three. Throws a
 * RequestError that names near mnemonics for one that is not known, and the arities for a wrong one.
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
