import type { BlackwellArchitecture } from '../../hardware/index.js';

/** The units of an SM that a timed schedule keeps busy. */
export type TimedUnit = 'tensor core' | 'TMA' | 'tensor memory' | 'MUFU' | 'FMA' | 'issue';

/** An SM's four parts, each with a scheduler that issues one warp instruction per clock. */
export const partitions = 4;

/** How fast an SM's units are, per clock. */
export interface UnitRates {
  readonly name: string;
  /** Floating-point operations of the tensor core on 16-bit and on 8-bit operands. */
  readonly mmaFlops: Readonly<Record<16 | 8, number>>;
  /** Lanes of the special function unit; a quarter of them serves a warp. */
  readonly mufuLanes: number;
  /** Lanes of fp32 arithmetic; a quarter of them serves a warp. */
  readonly fmaLanes: number;
  /** Bytes of shared memory. */
  readonly sharedBytes: number;
  /** Bytes of tensor memory that tcgen05.ld and tcgen05.st move for a warp. */
  readonly tensorBytes: number;
  /** Bytes that TMA brings from global memory, and the clocks until the first of them is there. */
  readonly bulkBytes: number;
  readonly bulkLatency: number;
  /** Clocks from an MMA's end, or an arrival, until a waiting warp goes on. */
  readonly signalLatency: number;
  /** What stands behind each number that is not the paper's. */
  readonly evidence: readonly string[];
}

const blackwell: UnitRates = {
  name: 'sm_100',
  mmaFlops: { 16: 8192, 8: 16384 },
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
 * its polynomial off there); the rest is taken to be equal.
 */
export const unitRates = {
  sm_100: blackwell,
  sm_103: { ...blackwell, name: 'sm_103', mufuLanes: 32 },
} as const satisfies Readonly<Record<BlackwellArchitecture, UnitRates>>;
