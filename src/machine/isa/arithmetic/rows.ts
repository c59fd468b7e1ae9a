import { laneRows, type Variant } from '../../../isa/index.js';
import type { ArithmeticInstruction, ArithmeticUnit, WordInstruction } from './instruction.js';

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
export function instructionsOfRows(): ArithmeticInstruction[] {
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
