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

function wordInstruction(variant: Variant): WordInstruction[] {
  const { evaluate, run } = variant;
  if (run === null) return [];
  return [
    {
      ...factsOf(variant),
      width: 1,
      evaluate: evaluate as WordInstruction['evaluate'],
      loop: run,
    },
  ];
}

/** The instructions of src/isa that programs of the machine use: those with a loop, and pairs of such. */
export function instructionsOfRows(): ArithmeticInstruction[] {
  const variants = laneRows.flatMap((row) => row.variants());
  const words = new Map(
    variants.flatMap((variant) =>
      wordInstruction(variant).map((instruction) => [variant, instruction] as const),
    ),
  );
  return variants.flatMap((variant): ArithmeticInstruction[] => {
    const word = words.get(variant);
    if (word !== undefined) return [word];
    const element = variant.element === null ? undefined : words.get(variant.element);
    return element === undefined ? [] : [{ ...factsOf(variant), width: 2, element }];
  });
}
