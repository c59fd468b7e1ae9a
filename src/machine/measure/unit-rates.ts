import type { BlackwellArchitecture } from '../../hardware/index.js';
import { arithmeticInstructions, type ArithmeticUnit, warpLanes } from '../isa/index.js';
import type { Amounts, CtaCounters } from './counters.js';

/** The units of an SM that a timed schedule keeps busy. */
export type TimedUnit =
  'tensor core' | 'TMA' | 'load/store' | 'tensor memory' | 'MUFU' | 'FMA' | 'issue';

/** An SM's four parts, each with a scheduler that issues one warp instruction per clock. */
export const partitions = 4;

/** Rates of an SM's units, per clock. */
export interface UnitRates {
  readonly name: string;
  /** Floating-point operations of the tensor core on tf32, on 16-bit and on 8-bit operands. */
  readonly mmaFlops: Readonly<Record<32 | 16 | 8, number>>;
  /** Lanes of the special function unit; a quarter of them serves a warp. */
  readonly mufuLanes: number;
  /** Lanes of fp32 arithmetic; a quarter of them serves a warp. */
  readonly fmaLanes: number;
  /** Bytes of shared memory. */
  readonly sharedBytes: number;
  /** Bytes of tensor memory that tcgen05.ld and tcgen05.st move for a warp. */
  readonly tensorBytes: number;
  /** Bytes that TMA brings from global memory, and the clocks until the first of them arrives. */
  readonly bulkBytes: number;
  readonly bulkLatency: number;
  /** Clocks from an MMA's end, or an arrival, until a waiting warp goes on. */
  readonly signalLatency: number;
  /** Evidence for each number that is not the paper's. */
  readonly evidence: readonly string[];
}

const blackwell: UnitRates = {
  name: 'sm_100',
  mmaFlops: { 32: 4096, 16: 8192, 8: 16384 },
  mufuLanes: 16,
  fmaLanes: 128,
  sharedBytes: 128,
  tensorBytes: 128,
  bulkBytes: 64,
  bulkLatency: 600,
  signalLatency: 30,
  evidence: [
    'tensor core, MUFU, FMA and shared memory: FlashAttention-4, arXiv 2603.05451, section on rooflines',
    'tensor memory, TMA and latencies: assumed; they shape the picture, not the counts',
  ],
};

/**
 * The rates by architecture. sm_103 has twice sm_100's rate of ex2 (which is why FlashAttention-4 turns
 * its polynomial off there); the rest is taken to be equal, and sm_110's are: the data sheet of Jetson Thor, 1,035 dense FP4 TFLOPS of 20
 * multiprocessors at 1.575 GHz, is four times 8192 FLOP a clock.
 */
export const unitRates = {
  sm_100: blackwell,
  sm_103: { ...blackwell, name: 'sm_103', mufuLanes: 32 },
  sm_110: { ...blackwell, name: 'sm_110' },
} as const satisfies Readonly<Record<BlackwellArchitecture, UnitRates>>;

/** The units of an SM that a roofline covers. */
export type RooflineUnit =
  'tensor core' | 'MUFU' | 'FMA' | 'shared memory' | 'issue' | 'tensor memory' | 'TMA';

/** A part of a unit's work: the amount counted under one name, at its rate. */
export interface UnitPart {
  readonly name: string;
  /** In the unit's measure. */
  readonly amount: number;
  /** The same per clock. */
  readonly rate: number;
  /** amount / rate. */
  readonly clocks: number;
}

/** The way to read a unit's work off counters. */
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

/** Facts by mnemonic; instructions that share a mnemonic differ in neither of the two. */
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
 * Each unit's work among the counters. A packed instruction is two operations of each lane. An
 * instruction takes one issue slot, a wait too, however long it waits; instructions that the emulated
 * program does not issue (addresses, loops) are missing, so that the issue clocks are a lower bound.
 */
export const rooflineUnits: readonly RooflineUnitDefinition[] = [
  {
    unit: 'tensor core',
    measure: 'FLOP',
    evidence: 'published',
    parts: ({ mmaFlopsByOperandBits }, { mmaFlops }) =>
      ([32, 16, 8] as const)
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
