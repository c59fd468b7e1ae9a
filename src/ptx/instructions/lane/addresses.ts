import { genericAddress, isInSpace, type MemorySpace } from '../../../machine/index.js';
import type { LaneInstruction } from '../lane-instruction.js';
import { row, type FamilyFacts } from './row.js';

const facts: FamilyFacts = {
  unit: 'alu',
  evidence: 'isa',
  source: 'PTX ISA, "cvta", "isspacep", "Generic Addressing"',
};

/** State spaces as instructions name them. */
const spaces: Readonly<Record<string, MemorySpace>> = {
  const: 'const',
  global: 'global',
  local: 'local',
  shared: 'shared',
  'shared::cta': 'shared',
  'shared::cluster': 'shared',
  param: 'param',
  'param::entry': 'param',
};

/**
 * Conversions of addresses to and from the generic space, and the question which space one is in. The windows are
 * those of src/machine/memory/address-windows.ts, so that converting adds or subtracts a window's base.
 */
export const addressInstructions: readonly LaneInstruction[] = Object.entries(spaces).flatMap(
  ([name, space]) => {
    const base = BigInt(genericAddress(space, 0));
    const asked = (generic: bigint | number): number => (isInSpace(space, Number(generic)) ? 1 : 0);
    const address = { destinations: [64], sources: [64] } as const;
    return [
      row(
        `cvta.${name}.u64`,
        { ...address, evaluate: (from) => BigInt.asUintN(64, BigInt(from) + base) },
        facts,
      ),
      row(
        `cvta.to.${name}.u64`,
        { ...address, evaluate: (from) => BigInt.asUintN(64, BigInt(from) - base) },
        facts,
      ),
      row(`isspacep.${name}`, { destinations: ['pred'], sources: [64], evaluate: asked }, facts),
    ];
  },
);
