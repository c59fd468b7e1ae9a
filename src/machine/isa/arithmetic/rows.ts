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

/** Moves of 64-bit registers, which are moves of two words here. */
const wideMoves: Readonly<Record<string, string>> = {
  'mov.b64': 'mov.b32',
  'mov.u64': 'mov.b32',
  'mov.s64': 'mov.b32',
};

/** The instructions of src/isa that programs of the machine use: those with a loop, and pairs of such. */
export function instructionsOfRows(): ArithmeticInstruction[] {
  const variants = laneRows.flatMap((row) => (row.isOfMachine ? row.variants() : []));
  const words = new Map(
    variants.flatMap((variant) =>
      wordInstruction(variant).map((instruction) => [variant, instruction] as const),
    ),
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
