import {
  addFloat32,
  fusedMultiplyAddFloat32,
  multiplyFloat32,
  subtractFloat32,
} from '../../src/arith/index.js';
import { decode, encode, formats } from '../../src/formats/index.js';
import {
  conversions,
  exp2ApproxFtz,
  lg2ApproxFtz,
  rcpApproxFtz,
} from '../../src/hardware/index.js';
import { exp2Polynomial } from './exp2-polynomial.js';
import { fragmentColumns, usesPolynomial } from '../fa4/exp2-tuning.js';
import type { KeyBlock } from './key-blocks.js';
import type { Fa4Configuration } from '../fa4/configuration.js';
import { naturalLogOf2 } from '../fa4/forward-constants.js';
import { fa4Formats, type Fa4Format } from '../fa4/forward-formats.js';

const { fp32 } = formats;

/** A function of fp32 bit patterns as one of numbers. */
function onNumbers(instruction: (bits: number) => number): (x: number) => number {
  return (x) => decode(fp32, instruction(encode(fp32, x)));
}

/** ex2.approx.ftz, lg2.approx.ftz and rcp.approx.ftz of fp32 numbers. */
export const exp2Hardware = onNumbers(exp2ApproxFtz);
export const log2Hardware = onNumbers(lg2ApproxFtz);
export const reciprocalHardware = onNumbers(rcpApproxFtz);

/** What a tile is computed with. */
export interface TileSetting {
  readonly configuration: Fa4Configuration;
  readonly format: Fa4Format;
  /** The scale of the exponents: softmax scale times log2 e and descales, an fp32 number. */
  readonly scale: number;
}

/** A block of keys on its way through the steps. */
export interface StepBlock extends KeyBlock {
  /** Which of the tile's blocks it is, in the order visited. */
  readonly index: number;
  /** Whether any query of the tile does not see all of its columns. */
  readonly isMasked: boolean;
}

/** What a row makes of its running maximum in a block. */
export interface RowMaximum {
  /** The maximum that stays in use. */
  readonly stored: number;
  /** What is subtracted from the scores of this block. */
  readonly subtracted: number;
  /** The factor on what was summed before. */
  readonly alpha: number;
  /** Whether α would be below 1 but for the threshold. */
  readonly isSkipped: boolean;
}

/**
 * The steps of FlashAttention-4's forward on one tile that are not matrix products, in the order in
 * which a block takes them. Numbers are fp32 unless a step says that it takes bits.
 */
export interface ForwardSteps {
  /** The score as the softmax takes it, of the product's fp32 bits. Masked ones are −∞ by then. */
  readonly score: (bits: number) => number;
  /** The larger of a running maximum and a score. */
  readonly larger: (maximum: number, score: number) => number;
  /** From the maximum in use before and the largest score up to now. */
  readonly rowMaximum: (before: number, now: number, isFirst: boolean) => RowMaximum;
  readonly exponent: (score: number, subtracted: number) => number;
  readonly exponential: (x: number, column: number, block: StepBlock) => number;
  /** The bits of P in the inputs' format. */
  readonly weight: (p: number, block: StepBlock) => number;
  /** The row sum that a block begins with. */
  readonly startingSum: (sum: number, alpha: number) => number;
  readonly rowSum: (start: number, weights: readonly number[], block: StepBlock) => number;
  /** What the outputs of the tile's rows are multiplied by, from their α. */
  readonly outputAlphas: (alphas: readonly number[], block: StepBlock) => readonly number[];
  /** Whether a warp multiplies its outputs, from what these are multiplied by. */
  readonly rescalesWarp: (alphas: readonly number[]) => boolean;
  /** The bits of a sum of O as the accumulator holds them after a block. */
  readonly accumulated: (bits: number) => number;
  /** What O is multiplied by at the end; `start` is what the last block's row sum began with. */
  readonly normaliser: (sum: number, start: number) => number;
  /** log2 of the sum of exponentials; −∞ for an empty row. */
  readonly logSumExp2: (maximum: number, sum: number) => number;
  /** The LSE from that logarithm. */
  readonly logSumExp: (logSumExp2: number) => number;
}

/** Whether a row has no weights to divide by. */
export function isEmptySum(sum: number): boolean {
  return sum === 0 || Number.isNaN(sum);
}

/** Which columns of a block the polynomial computes. */
export function polynomialColumns({ exp2, blockKeys }: Fa4Configuration): boolean[] {
  const fragments = blockKeys / fragmentColumns;
  return Array.from({ length: blockKeys }, (_, j) =>
    usesPolynomial(exp2, Math.floor(j / fragmentColumns), j % fragmentColumns, fragments),
  );
}

/** Four packed accumulators over pairs of weights, then a tree; the first begins with `start`. */
function packedRowSum(start: number, weights: readonly number[]): number {
  const lanes = weights.slice(0, 8);
  lanes[0] = addFloat32(start, weights[0]);
  lanes[1] = addFloat32(0, weights[1]);
  for (let j = 8; j < weights.length; j++) lanes[j % 8] = addFloat32(lanes[j % 8], weights[j]);
  const [x, y] = [0, 1].map((lane) =>
    addFloat32(
      addFloat32(lanes[lane], lanes[2 + lane]),
      addFloat32(lanes[4 + lane], lanes[6 + lane]),
    ),
  );
  return addFloat32(x, y);
}

/**
 * The steps as FlashAttention-4 has them: every operation is fp32, rounds to nearest even and keeps
 * subnormals, except where an instruction of the special function unit flushes them. Source:
 * flash_attn/cute/softmax.py and flash_fwd_sm100.py of Dao-AILab/flash-attention.
 */
export function forwardSteps({ configuration, format, scale }: TileSetting): ForwardSteps {
  const { exp2, lseFused } = configuration;
  const rescaleThreshold = Math.fround(configuration.rescaleThreshold);
  const maxOffset = Math.fround(configuration.maxOffset);
  const isPolynomial = polynomialColumns(configuration);
  const toWeight = conversions[fa4Formats[format].weightConversion];
  const valueDescale = Math.fround(configuration.descale.v);
  return {
    score: (bits) => decode(fp32, bits),
    // PTX's max: a NaN loses.
    larger: (maximum, score) => (Number.isNaN(maximum) || score > maximum ? score : maximum),
    rowMaximum: (before, now, isFirst) => {
      const subtracted = now === -Infinity ? 0 : now;
      if (isFirst) return { stored: now, subtracted, alpha: 0, isSkipped: false };
      const lag = multiplyFloat32(subtractFloat32(before, subtracted), scale);
      const alpha = exp2Hardware(lag);
      if (rescaleThreshold > 0 && lag >= -rescaleThreshold)
        return { stored: before, subtracted: before, alpha: 1, isSkipped: alpha < 1 };
      return { stored: now, subtracted, alpha, isSkipped: false };
    },
    exponent: (score, subtracted) =>
      fusedMultiplyAddFloat32(
        score,
        scale,
        subtractFloat32(maxOffset, multiplyFloat32(subtracted, scale)),
      ),
    exponential: (x, column) =>
      isPolynomial[column] ? exp2Polynomial(x, exp2.degree) : exp2Hardware(x),
    weight: (p) => toWeight.evaluate(encode(fp32, p)),
    startingSum: multiplyFloat32,
    rowSum: packedRowSum,
    outputAlphas: (alphas) => alphas,
    rescalesWarp: (alphas) => alphas.some((alpha) => alpha < 1),
    accumulated: (bits) => bits,
    normaliser: (sum) =>
      multiplyFloat32(reciprocalHardware(isEmptySum(sum) ? 1 : sum), valueDescale),
    logSumExp2: (maximum, sum) => {
      if (isEmptySum(sum)) return -Infinity;
      const logarithm = subtractFloat32(log2Hardware(sum), maxOffset);
      return lseFused
        ? fusedMultiplyAddFloat32(maximum, scale, logarithm)
        : addFloat32(multiplyFloat32(maximum, scale), logarithm);
    },
    logSumExp: (logSumExp2) => multiplyFloat32(logSumExp2, naturalLogOf2),
  };
}
