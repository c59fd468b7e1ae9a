import { arithmeticInstructions, warpLanes, type ArithmeticUnit } from '../isa/index.js';
import type { Amounts, CtaCounters } from './counters.js';
import { partitions, type UnitRates } from './unit-rates.js';

/** The units of an SM that a roofline looks at. */
export type RooflineUnit =
  'tensor core' | 'MUFU' | 'FMA' | 'shared memory' | 'issue' | 'tensor memory' | 'TMA';

/** A part of a unit's work: what was counted under one name, at the rate that holds for it. */
export interface UnitPart {
  readonly name: string;
  /** In the unit's measure. */
  readonly amount: number;
  /** The same per clock. */
  readonly rate: number;
  /** amount / rate. */
  readonly clocks: number;
}

/** How a unit's work is read off counters. */
export interface RooflineUnitDefinition {
  readonly unit: RooflineUnit;
  readonly measure: 'FLOP' | 'lane operations' | 'bytes' | 'warp instructions';
  /** Whether the rate is published or only assumed; see `UnitRates.evidence`. */
  readonly evidence: 'published' | 'assumed';
  readonly parts: (counters: CtaCounters, rates: UnitRates) => readonly UnitPart[];
}

function part(name: string, amount: number, rate: number): UnitPart {
  return { name, amount, rate, clocks: amount / rate };
}

function partsOf(
  amounts: Amounts,
  rate: number,
  isIncluded: (name: string) => boolean = () => true,
): readonly UnitPart[] {
  return Object.entries(amounts)
    .filter(([name, amount]) => amount !== 0 && isIncluded(name))
    .map(([name, amount]) => part(name, amount, rate));
}

/** By mnemonic; instructions that share one differ in neither of the two. */
const arithmeticFacts = new Map(
  arithmeticInstructions.map(({ name, unit, laneOperations }) => [name, { unit, laneOperations }]),
);

/** The operations of all lanes on an arithmetic unit, by mnemonic. */
export function laneOperations({ instructions }: CtaCounters, unit: ArithmeticUnit): Amounts {
  const operations: Amounts = {};
  for (const [name, count] of Object.entries(instructions)) {
    const facts = arithmeticFacts.get(name);
    if (facts?.unit === unit) operations[name] = count * facts.laneOperations * warpLanes;
  }
  return operations;
}

/** Whether tcgen05.ld or tcgen05.st moved it: the tensor core reaches tensor memory by itself. */
function isRegisterTraffic(name: string): boolean {
  return name.endsWith('→ registers') || name.startsWith('registers →');
}

function isBulkTraffic(name: string): boolean {
  return name.endsWith('→ TMA') || name.startsWith('TMA →');
}

/**
 * Where each unit's work is found among the counters. A packed instruction is two operations of each
 * lane. An instruction takes one issue slot, a wait too, however long it waits; what the emulated
 * program does not issue (addresses, loops) is not there, so that the issue clocks are a lower bound.
 */
export const rooflineUnits: readonly RooflineUnitDefinition[] = [
  {
    unit: 'tensor core',
    measure: 'FLOP',
    evidence: 'published',
    parts: ({ mmaFlopsByOperandBits }, { mmaFlops }) =>
      ([16, 8] as const)
        .filter((bits) => (mmaFlopsByOperandBits[bits] ?? 0) !== 0)
        .map((bits) => part(`${bits}-bit operands`, mmaFlopsByOperandBits[bits], mmaFlops[bits])),
  },
  {
    unit: 'MUFU',
    measure: 'lane operations',
    evidence: 'published',
    parts: (counters, { mufuLanes }) => partsOf(laneOperations(counters, 'mufu'), mufuLanes),
  },
  {
    unit: 'FMA',
    measure: 'lane operations',
    evidence: 'published',
    parts: (counters, { fmaLanes }) => partsOf(laneOperations(counters, 'fma'), fmaLanes),
  },
  {
    unit: 'shared memory',
    measure: 'bytes',
    evidence: 'published',
    parts: ({ sharedBytes }, rates) => partsOf(sharedBytes, rates.sharedBytes),
  },
  {
    unit: 'issue',
    measure: 'warp instructions',
    evidence: 'published',
    parts: ({ instructions }) => partsOf(instructions, partitions),
  },
  {
    unit: 'tensor memory',
    measure: 'bytes',
    evidence: 'assumed',
    parts: ({ tensorBytes }, rates) =>
      partsOf(tensorBytes, partitions * rates.tensorBytes, isRegisterTraffic),
  },
  {
    unit: 'TMA',
    measure: 'bytes',
    evidence: 'assumed',
    parts: ({ globalBytes }, { bulkBytes }) => partsOf(globalBytes, bulkBytes, isBulkTraffic),
  },
];
