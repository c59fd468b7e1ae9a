import {
  type CtaCounters,
  type InstructionCounts,
  warpLanes,
} from '../../../../src/machine/index.js';
import type { ExponentialSplit, RescaleTraffic } from '../../../kernel-program.js';
import { fa4Formats } from '../../configuration.js';
import { roundingConversions } from '../../../online-softmax/units.js';
import { polynomialColumns } from '../../exp2-tuning.js';
import type { TileSetting } from '../../recipe.js';
import type { SoftmaxIssues } from './row-arithmetic.js';

const wordBytes = 4;
/** The instruction that begins the polynomial of a pair of columns. */
const polynomialStart = 'add.rm.ftz.f32x2';
const hardwareExponential = 'ex2.approx.ftz.f32';
const columnsOfPair = 2;

/**
 * Distribution of a run's exponentials between the special function unit and the FMA units, from
 * its counters. One exponential for each α that is handed to the correction warps is not a score's.
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
 * The traffic of O between tensor memory and registers, from a run's counters. A rescale writes
 * back everything that it reads; the other reads belong to the end of a tile.
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

/** Limits of a block's mask: none, from above only, or from both sides. */
type MaskKind = 'none' | 'end' | 'begin and end';

/** Instructions that a warp issues for each piece of its rows' arithmetic. */
interface RowCounts {
  readonly softmax: (mask: MaskKind, isFirst: boolean) => SoftmaxIssues;
  readonly needsRescale: InstructionCounts;
  /** For `columns` columns of O in each lane. */
  readonly rescale: (columns: number) => InstructionCounts;
  readonly normalisers: InstructionCounts;
  /** For `columns` columns of O in each lane. */
  readonly normalise: (columns: number) => InstructionCounts;
  readonly logSumExp: InstructionCounts;
}

/** The sums of counts, mnemonic by mnemonic; zero sums are left out. */
export function addCounts(...all: readonly InstructionCounts[]): InstructionCounts {
  const sums: Record<string, number> = {};
  for (const counts of all)
    for (const [name, count] of Object.entries(counts))
      if (count > 0) sums[name] = (sums[name] ?? 0) + count;
  return sums;
}

/** Columns of a step of the reductions: four accumulators of two columns each. */
const reductionColumns = 8;
/** Columns of a word of mask bits. */
const maskWordColumns = 32;

/** A lower limit makes a second word of bits for every 32 columns, joined to the first. */
function maskCounts(mask: MaskKind, columns: number): InstructionCounts {
  if (mask === 'none') return {};
  const words = columns / maskWordColumns;
  const limits = mask === 'end' ? words : 2 * words;
  return {
    'sub.s32': limits,
    'max.s32': limits,
    'shr.u32': words,
    'shl.b32': limits - words,
    'and.b32': columns + limits - words,
    'setp.ne.s32': columns,
    'selp.f32': columns,
  };
}

/** Four maxima over pairs of columns with three operands, then two instructions more. */
function maximumCounts(columns: number): InstructionCounts {
  return { 'max.f32': columns / 2 + 2 };
}

function alphaCounts(isFirst: boolean, rescaleThreshold: number): InstructionCounts {
  const safe = { 'setp.neu.f32': 1, 'selp.f32': 1 };
  if (isFirst) return safe;
  const lag = { 'sub.rn.f32': 1, 'mul.rn.f32': 1, 'ex2.approx.ftz.f32': 1 };
  const threshold = rescaleThreshold > 0 ? { 'setp.ge.f32': 1, 'selp.f32': 3 } : {};
  return addCounts(safe, lag, threshold);
}

/** The range reduction, the polynomial and the exponent of two columns: exp2.ts has the chain. */
function polynomialPairCounts(degree: number): InstructionCounts {
  return {
    'max.f32': 2,
    'add.rm.ftz.f32x2': 1,
    'sub.rn.f32x2': 2,
    'fma.rn.f32x2': degree,
    'shl.b32': 2,
    'add.s32': 2,
  };
}

function times(factor: number, counts: InstructionCounts): InstructionCounts {
  return Object.fromEntries(Object.entries(counts).map(([name, n]) => [name, factor * n]));
}

/** The first block has no sum to begin with, and its first pairs are the accumulators. */
function rowSumCounts(columns: number, isFirst: boolean): InstructionCounts {
  const pairs = 4 * (columns / reductionColumns - 1) + 3;
  return isFirst
    ? { 'add.rn.f32x2': pairs, 'add.rn.f32': 1 }
    : { 'mul.rn.f32': 1, 'add.rn.f32x2': pairs + 1, 'add.rn.f32': 1 };
}

/** The instructions that FlashAttention-4's rows take, counted from its source. */
export function rowCounts({ configuration, format }: TileSetting): RowCounts {
  const { blockKeys, exp2, rescaleThreshold, outFormat, lseFused } = configuration;
  const polynomials = polynomialColumns(configuration).filter(Boolean).length;
  const weights = addCounts(
    // The bias, then the scores.
    { 'mul.rn.f32': 1, 'sub.rn.f32': 1, 'fma.rn.f32x2': blockKeys / 2 },
    { 'ex2.approx.ftz.f32': blockKeys - polynomials },
    times(polynomials / 2, polynomialPairCounts(exp2.degree)),
    { [fa4Formats[format].weightConversion]: blockKeys / 2 },
  );
  return {
    softmax: (mask, isFirst) => ({
      maximum: addCounts(
        maskCounts(mask, blockKeys),
        maximumCounts(blockKeys),
        alphaCounts(isFirst, rescaleThreshold),
      ),
      weights,
      rowSum: rowSumCounts(blockKeys, isFirst),
    }),
    needsRescale: { 'setp.lt.f32': 1, 'vote.sync.ballot.b32': 1 },
    rescale: (columns) => ({ 'mul.rn.f32x2': columns / 2 }),
    // Whether a sum is 0 or NaN is one comparison, here and again for the LSE.
    normalisers: { 'setp.equ.f32': 1, 'selp.f32': 1, 'rcp.approx.ftz.f32': 1, 'mul.rn.f32': 1 },
    normalise: (columns) => ({
      'mul.rn.f32x2': columns / 2,
      [roundingConversions[outFormat]]: columns / 2,
    }),
    logSumExp: addCounts(
      { 'setp.equ.f32': 1, 'lg2.approx.ftz.f32': 1, 'sub.rn.f32': 1 },
      { 'mul.rn.f32': 1, 'selp.f32': 1 },
      lseFused ? { 'fma.rn.f32': 1 } : { 'mul.rn.f32': 1, 'add.rn.f32': 1 },
    ),
  };
}
