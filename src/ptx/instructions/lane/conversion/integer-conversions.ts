import {
  integerOf,
  type IntegerType,
  integerTypes,
  type LaneInstruction,
  type LaneValue,
  rangeOf,
  registerOf,
  registerValue,
  type RegisterWidth,
  saturate,
} from '../../../../isa/index.js';
import { type FamilyFacts, row } from '../row.js';

const { u8, s8, u16, s16, u32, s32, u64, s64 } = integerTypes;
const types: readonly IntegerType[] = [u8, s8, u16, s16, u32, s32, u64, s64];

const facts: FamilyFacts = {
  meaning: 'moves',
  unit: 'conversion',
  evidence: 'isa',
  source: 'PTX ISA, Data Movement and Conversion Instructions: cvt',
};

/** The registers that hold a type: wider registers hold a signed type extended. */
export function registersOf({ bits, isSigned }: IntegerType): RegisterWidth[] {
  const narrowest = registerOf(bits);
  if (!isSigned) return [narrowest];
  return ([16, 32, 64] as const).filter((width) => width >= (narrowest as number));
}

function conversions(to: IntegerType, from: IntegerType): LaneInstruction[] {
  const modifiers: Record<string, (value: bigint) => bigint> = { '': (value) => value };
  // `.sat` is allowed only where it can change something.
  if (rangeOf(from).some((end) => saturate(to, end) !== end))
    modifiers['.sat'] = (value) => saturate(to, value);
  return Object.entries(modifiers).flatMap(([modifier, limit]) =>
    registersOf(to).map((width) => {
      const evaluate = (value: LaneValue): LaneValue =>
        registerValue(width, integerOf(to, registerValue(64, limit(integerOf(from, value)))));
      return row(
        `cvt${modifier}.${to.name}.${from.name}`,
        { destinations: [width], sources: [registerOf(from.bits)], evaluate },
        facts,
      );
    }),
  );
}

/**
 * `cvt` between integers: cut to the bits of the type, or clamped to its range with `.sat`, and then
 * extended to the register by the type's sign; for wider registers a signed type has rows of its own.
 */
export const integerConversions: readonly LaneInstruction[] = types.flatMap((to) =>
  types.flatMap((from) => conversions(to, from)),
);
