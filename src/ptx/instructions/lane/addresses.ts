import {
  clusterAddress,
  genericAddress,
  isInSpace,
  splitClusterAddress,
  type MemorySpace,
} from '../../../machine/index.js';
import type { LaneInstruction, LaneValue } from '../../../isa/index.js';
import { row, type FamilyFacts } from './row.js';

const facts: FamilyFacts = {
  meaning: 'is',
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
 * Conversions of addresses to and from the generic space, and queries for the space of an address. The windows
 * are those of src/machine/memory/address-windows.ts, so that converting adds or subtracts a window's base.
 */
const conversions: readonly LaneInstruction[] = Object.entries(spaces).flatMap(([name, space]) => {
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
});

const clusterFacts: FamilyFacts = {
  meaning: 'is',
  unit: 'alu',
  evidence: 'isa',
  source:
    'PTX ISA, "mapa", "getctarank"; the rank of a CTA in bits 24 and above of an address of shared memory',
};

/** Beginning of the shared memory of the CTA of rank 0, as an address of shared memory and as a generic one. */
const origins = { '.shared::cluster': 0, '': genericAddress('shared', 0) } as const;

/** The same place in the shared memory of the CTA of another rank, and the rank of the CTA of a place. */
const clusterAddresses: readonly LaneInstruction[] = Object.entries(origins).flatMap(
  ([space, origin]) =>
    ([32, 64] as const).flatMap((width) => {
      // An address of 32 bits cannot be generic.
      if (width === 32 && origin !== 0) return [];
      const split = (address: LaneValue) => splitClusterAddress(Number(address) - origin);
      const placed = (address: LaneValue, rank: LaneValue): LaneValue => {
        const mapped = origin + clusterAddress(Number(rank), split(address).offset);
        return width === 64 ? BigInt.asUintN(64, BigInt(mapped)) : mapped % 2 ** 32;
      };
      return [
        row(
          `mapa${space}.u${width}`,
          { destinations: [width], sources: [width, 32], evaluate: placed },
          clusterFacts,
        ),
        row(
          `getctarank${space}.u${width}`,
          {
            destinations: [32],
            sources: [width],
            evaluate: (address) => split(address).rank >>> 0,
          },
          clusterFacts,
        ),
      ];
    }),
);

/** Instructions that compute addresses. */
export const addressInstructions: readonly LaneInstruction[] = [
  ...conversions,
  ...clusterAddresses,
];
