import { laneRows, type Variant } from '../../isa/index.js';
import { RequestError } from '../../request-error.js';

/**
 * The pipelines of an SM that execute arithmetic, as Nsight Compute divides them: `fma` multiplies and
 * adds, integers' products too; `alu` compares, selects and works on bits and integers; `mufu` is the
 * special function unit; `conversion` changes formats.
 */
export type ArithmeticUnit = 'fma' | 'alu' | 'mufu' | 'conversion';

/** Facts about every arithmetic instruction. */
interface InstructionFacts {
  /** The mnemonic as PTX spells it, modifiers included; two arities may share one. */
  readonly name: string;
  readonly unit: ArithmeticUnit;
  /** Number of sources: registers, and the immediate of `lop3`. */
  readonly operands: 1 | 2 | 3 | 4;
  /** Results of the unit that one lane computes: two for a packed instruction. */
  readonly laneOperations: 1 | 2;
}

/** An instruction whose operands are 32-bit registers, predicates among them as 0 or 1. */
export interface WordInstruction extends InstructionFacts {
  readonly width: 1;
  /**
   * One lane's result from the bit patterns of its sources, all of them integers from 0 to 2^32 − 1,
   * in PTX's order; `operands` of them. A 16-bit source is the low half of its register, whose high
   * half is ignored; a 16-bit result leaves zeros there.
   */
  readonly evaluate: (...sources: number[]) => number;
}

/** An instruction whose operands are pairs of registers, and that treats both words alike. */
export interface PairInstruction extends InstructionFacts {
  readonly width: 2;
  /** The operation on the low words and, independently, on the high words. */
  readonly element: WordInstruction;
}

/** An instruction from registers to a register, or from pairs of registers to a pair. */
export type ArithmeticInstruction = WordInstruction | PairInstruction;

/** The facts that both forms have. */
function factsOf({ name, unit, sources, laneOperations }: Variant) {
  return {
    name,
    unit: unit as ArithmeticUnit,
    operands: sources.length as WordInstruction['operands'],
    laneOperations,
  };
}

function wordInstruction(variant: Variant): WordInstruction {
  return {
    ...factsOf(variant),
    width: 1,
    evaluate: variant.evaluate as WordInstruction['evaluate'],
  };
}

/** Moves of 64-bit registers, which are moves of two words here. */
const wideMoves: Readonly<Record<string, string>> = {
  'mov.b64': 'mov.b32',
  'mov.u64': 'mov.b32',
  'mov.s64': 'mov.b32',
};

/** The instructions of src/isa that are the machine's, on words and on pairs of words. */
function instructionsOfRows(): ArithmeticInstruction[] {
  const variants = laneRows.flatMap((row) => (row.isOfMachine ? row.variants() : []));
  const words = new Map(
    variants
      .filter(({ isOfMachine, element }) => isOfMachine && element === null)
      .map((variant) => [variant, wordInstruction(variant)]),
  );
  const byName = new Map([...words.values()].map((word) => [word.name, word]));
  return variants.flatMap((variant): ArithmeticInstruction[] => {
    const word = words.get(variant);
    if (word !== undefined) return [word];
    const element = variant.element === null ? undefined : words.get(variant.element);
    if (element !== undefined) return [{ ...factsOf(variant), width: 2, element }];
    const half =
      wideMoves[variant.name] === undefined ? undefined : byName.get(wideMoves[variant.name]);
    return half === undefined
      ? []
      : [{ ...factsOf(variant), laneOperations: 2, width: 2, element: half }];
  });
}

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
