import { warpLanes, type CtaCounters } from '../../../src/machine/index.js';
import type { ExponentialSplit, RescaleTraffic } from '../../kernel-program.js';

const wordBytes = 4;
/** Which instruction begins the polynomial of a pair of columns. */
const polynomialStart = 'add.rm.ftz.f32x2';
const hardwareExponential = 'ex2.approx.ftz.f32';
const columnsOfPair = 2;

/**
 * How the exponentials of a run fall on the special function unit and on the FMA units, from its
 * counters. One exponential for each α that is handed to the correction warps is no score's.
 */
export function exponentialSplit({ instructions, sharedBytes }: CtaCounters): ExponentialSplit {
  const factors = (sharedBytes['registers → α'] ?? 0) / wordBytes;
  const hardware = warpLanes * (instructions[hardwareExponential] ?? 0) - factors;
  const polynomial = warpLanes * columnsOfPair * (instructions[polynomialStart] ?? 0);
  const scores = hardware + polynomial;
  return {
    hardware,
    polynomial,
    factors,
    polynomialShare: scores === 0 ? 0 : polynomial / scores,
  };
}

/**
 * The traffic of O between tensor memory and registers, from a run's counters. Whatever a rescale
 * reads it writes back; the rest of the reads is the end of a tile.
 *
 * @param vDim columns of O
 */
export function rescaleTraffic(
  { instructions, tensorBytes }: CtaCounters,
  vDim: number,
): RescaleTraffic {
  const written = tensorBytes['registers → O'] ?? 0;
  return {
    bytesToRegisters: written,
    bytesToTensorMemory: written,
    finalBytes: (tensorBytes['O → registers'] ?? 0) - written,
    votes: instructions['vote.sync.ballot.b32'] ?? 0,
    rescales: written / (warpLanes * vDim * wordBytes),
  };
}
