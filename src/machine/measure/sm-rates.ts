import type { Architecture } from '../../hardware/index.js';
import { partitions, unitRates, type UnitRates } from './unit-rates.js';

/** The most that an SM does per clock, for the work of programs of any origin. */
export interface SmRates extends Pick<
  UnitRates,
  'mmaFlops' | 'mufuLanes' | 'fmaLanes' | 'sharedBytes'
> {
  /** Warp instructions issued. */
  readonly issues: number;
}

/** Lanes and bytes that are the same since Ampere. */
const common = { mufuLanes: 16, fmaLanes: 128, sharedBytes: 128, issues: partitions };

/** The rates in the table of an architecture of Blackwell, with half the rate for tf32. */
function blackwell(name: keyof typeof unitRates): SmRates {
  const { mmaFlops, mufuLanes, fmaLanes, sharedBytes } = unitRates[name];
  return {
    mmaFlops: { ...mmaFlops, 32: mmaFlops[16] / 2 },
    mufuLanes,
    fmaLanes,
    sharedBytes,
    issues: partitions,
  };
}

/**
 * The rates by architecture. Sources: MUFU, FMA and issue of sm_80, sm_89 and sm_90: CUDA C++ Programming Guide, "Arithmetic
 * Instructions" (results per clock and multiprocessor) and compute capabilities; shared memory: 32 banks of 4 bytes there. Tensor
 * cores: dense peaks of NVIDIA's data sheets divided by multiprocessors and boost clock (A100: 312 TFLOPS, 108, 1.41 GHz; RTX 4090: 330 with fp16
 * sums, 128, 2.52 GHz; H100 SXM: 989, 132, 1.83 GHz; RTX 5090: 419 with fp16 sums, 170, 2.407 GHz), with twice the rate for 8 bits and
 * half of it for tf32. GeForce halves the rate of fp32 sums, RTX PRO does not. Other Blackwell: `unitRates`.
 */
export const smRates: Readonly<Record<Architecture, SmRates>> = {
  // An A100 has half the fp32 lanes, and its 8 bits are whole numbers.
  sm_80: { ...common, fmaLanes: 64, mmaFlops: { 32: 1024, 16: 2048, 8: 4096 } },
  sm_89: { ...common, mmaFlops: { 32: 512, 16: 1024, 8: 2048 } },
  sm_90: { ...common, mmaFlops: { 32: 2048, 16: 4096, 8: 8192 } },
  sm_100: blackwell('sm_100'),
  sm_103: blackwell('sm_103'),
  sm_110: blackwell('sm_110'),
  sm_120: { ...common, mmaFlops: { 32: 512, 16: 1024, 8: 2048 } },
};
