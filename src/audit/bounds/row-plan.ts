import { type KernelArithmetic, type MaximumRule, roundoff32 } from '../../../kernels/index.js';
import { formats } from '../../formats/index.js';
import { largestKnownError, type WeightRounding } from './weights.js';
import { rescaleFactorError } from './sums.js';
import { mostSunken, type RowUnits } from './row-units.js';
import { commonExponentError, largestExponentError } from './scores.js';

/** Bounds of the maxima in use while one block of keys is worked on, a number for each row. */
interface BlockPath {
  /** The maximum in use lies within, as an exponent (log2); both −∞ before a row's first key. */
  readonly low: Float64Array;
  readonly high: Float64Array;
  /** The most by which it may have grown on this block (log2), so that older sums are rescaled; else 0. */
  readonly growth: Float64Array;
}

/** A comparison of fp32 numbers a and b ≥ 0 may go the other way when they are this close. */
const comparisonError = 4 * roundoff32;

/**
 * Follows the maximum in use of up to 64 rows from block to block, in the order in which the kernel
 * meets them. `maxima` holds each block's largest exponent per row, off by at most `uncertainty`. Where
 * that leaves open whether a rescale is skipped, both outcomes are within low and high.
 */
export function followMaximum(
  rule: MaximumRule & { readonly kind: 'online' },
  maxima: readonly Float64Array[],
  uncertainty: Float64Array,
): BlockPath[] {
  const rows = uncertainty.length;
  const nowLow = new Float64Array(rows).fill(-Infinity);
  const nowHigh = new Float64Array(rows).fill(-Infinity);
  return maxima.map((block) => {
    const growth = new Float64Array(rows);
    for (let i = 0; i < rows; i++) {
      const low = block[i] - uncertainty[i];
      const high = block[i] + uncertainty[i];
      if (low === -Infinity) continue;
      if (nowLow[i] === -Infinity) {
        nowLow[i] = low;
        nowHigh[i] = high;
        continue;
      }
      const most = Math.max(0, high - nowLow[i]);
      const least = Math.max(0, low - nowHigh[i]);
      if (rule.threshold > 0 && most <= rule.threshold * (1 - comparisonError)) continue;
      if (most === 0) continue;
      growth[i] = most;
      nowHigh[i] = Math.max(nowHigh[i], high);
      const grows = rule.threshold === 0 || least > rule.threshold * (1 + comparisonError);
      if (grows) nowLow[i] = Math.max(nowLow[i], low);
    }
    return { low: nowLow.slice(), high: nowHigh.slice(), growth };
  });
}

/** Facts about the rows before the first weight: arrays of one number for each row. */
interface KnownRows extends RowUnits {
  /** The largest error of an exponent (log2) that errors of the scores cause. */
  readonly uncertainty: Float64Array;
}

/** The plan for the weights of one block of keys, a number for each row. */
export interface BlockPlan {
  /** A weight before the division by the row sum is p = 2^(exponent + shift), after it p·gain. */
  readonly shift: Float64Array;
  readonly gain: Float64Array;
  /** p is known to within this relative error, beyond that of the exponential; see `weigh`. */
  readonly uncertainty: Float64Array;
  /** Bounds on how far rounding moves p where it is not known, relative to it and absolutely; else 0. */
  readonly relative: Float64Array;
  readonly least: Float64Array;
  /** The relative error common to all weights of the block: as O sees it, and as the LSE does. */
  readonly common: Float64Array;
  readonly commonOfLse: Float64Array;
  /** The relative error of all factors that the block's weights are multiplied by later. */
  readonly rescales: Float64Array;
  /** Whether sums of earlier blocks may be multiplied by a factor on this block: 1 or 0. */
  readonly multiplied: Uint8Array;
}

/** The whole way of up to 64 rows. */
export interface RowPlan {
  readonly blocks: readonly BlockPlan[];
  /** The number that exponents are relative to in the end (log2). */
  readonly origin: Float64Array;
  /** The largest magnitude of a maximum in use, and that of the last one (log2). */
  readonly largestMaximum: Float64Array;
  readonly finalMaximum: Float64Array;
  /** |log2| of the row sum as the kernel has it. */
  readonly logarithm: Float64Array;
  /** The most that a weight before the division by the row sum can be (log2). */
  readonly reach: Float64Array;
  /** Rows whose weights may leave the range of their format or of the exponential. */
  readonly overflows: Uint8Array;
}

/** The kernel's contract for an exponential: results below 2^127. */
const largestExponent = 127;

/**
 * Plans rows whose largest exponents per block (log2, in the kernel's order) are `maxima`. A weight is
 * taken as known where its uncertainty is a small share of the rounding.
 */
export function planRows(
  arithmetic: KernelArithmetic,
  rounding: WeightRounding,
  known: KnownRows,
  maxima: readonly Float64Array[],
): RowPlan {
  const { maximum } = arithmetic;
  if (maximum.kind === 'online') return planOnline(arithmetic, rounding, known, maxima);
  return planWhole(arithmetic, rounding, known, maxima.length);
}

function emptyBlock(rows: number): BlockPlan {
  const numbers = () => new Float64Array(rows);
  return {
    shift: numbers(),
    gain: numbers(),
    uncertainty: numbers(),
    relative: numbers(),
    least: numbers(),
    common: numbers(),
    commonOfLse: numbers(),
    rescales: numbers(),
    multiplied: new Uint8Array(rows),
  };
}

/** 2^x − 1, rounded up. */
function growthOf(x: number): number {
  return Math.expm1(Math.LN2 * x) * (1 + 2 ** -30);
}

/** Weights relative to the row's largest score: before or after the division by the row sum. */
function planWhole(
  { exponent, maximum, exponential, finish, weightFormat, weightScale = 1 }: KernelArithmetic,
  rounding: WeightRounding,
  { lse, maximum: largest, uncertainty, shared, denominator, sink }: KnownRows,
  blocks: number,
): RowPlan {
  const rows = lse.length;
  const reach = new Float64Array(rows);
  const overflows = new Uint8Array(rows);
  const mostWeight = Math.log2(formats[weightFormat].maxFinite / weightScale);
  const block = emptyBlock(rows);
  const isDivided = maximum.kind === 'whole-row';
  const origins = new Float64Array(rows);
  for (let i = 0; i < rows; i++) {
    if (!Number.isFinite(lse[i])) continue;
    if (!Number.isFinite(largest[i])) continue;
    const divisor = Math.min(denominator[i], lse[i] + mostSunken);
    const origin = isDivided ? divisor : (shared ?? largest[i]);
    // No weight is more than one where the maximum is that of the kernel's very scores.
    if (!isDivided && shared !== null) reach[i] = Math.max(0, largest[i] - origin + uncertainty[i]);
    // The largest weight itself may be the largest number of the format.
    if (reach[i] > 0 && reach[i] >= Math.min(largestExponent, mostWeight)) overflows[i] = 1;
    origins[i] = origin;
    block.shift[i] = -origin;
    block.gain[i] = 2 ** (origin - lse[i]);
    const wrong = uncertainty[i] + largestExponentError(exponent, Math.abs(largest[i]));
    // Twice: once in the weight, once in the sum that it is divided by, both rounded to fp32.
    const relative =
      2 * (growthOf(wrong) + exponential.hardware + finish.normalise + 4 * roundoff32);
    const isKnown = isDivided && rounding.isOfWeights && relative <= largestKnownError;
    block.uncertainty[i] = relative;
    block.relative[i] = isKnown ? 0 : rounding.relative + roundoff32;
    // Rounded before or after the division by the row sum, whichever has the higher floor.
    const divided =
      sink[i] === -Infinity ? 1 / block.gain[i] : 2 ** Math.min(divisor - origin, mostSunken);
    block.least[i] = isKnown ? 0 : rounding.least * Math.max(1, divided);
  }
  // A sink may be a score among others, so that where it is the largest the others are relative to it.
  const above = largest.map((most, i) => Math.max(0, sink[i] - (shared ?? most)));
  const ofSink = (i: number) => (above[i] > 0 ? Math.abs(sink[i]) : 0);
  return {
    blocks: Array.from({ length: blocks }, () => block),
    origin: origins,
    largestMaximum: largest.map(
      (most, i) => Math.max(Math.abs(most), Math.abs(shared ?? most), ofSink(i)) + above[i],
    ),
    finalMaximum: largest.map((most, i) => Math.max(Math.abs(shared ?? most), ofSink(i))),
    logarithm: largest.map((most, i) =>
      Math.max(Math.abs(lse[i] - (shared ?? most)), above[i] > 0 ? Math.abs(lse[i] - sink[i]) : 0),
    ),
    reach,
    overflows,
  };
}

/** A maximum in use below this leaves no weight in the end: none that fp64 has. */
function leastLasting(path: readonly BlockPath[], i: number): number {
  const last = path.at(-1)?.low[i] ?? -Infinity;
  return last === -Infinity ? Infinity : last - 1100;
}

function planOnline(
  arithmetic: KernelArithmetic,
  rounding: WeightRounding,
  { lse, uncertainty }: KnownRows,
  maxima: readonly Float64Array[],
): RowPlan {
  const { maximum, exponent, scaleError } = arithmetic;
  if (maximum.kind !== 'online') throw new TypeError('an online maximum');
  const { offset } = maximum;
  const rows = lse.length;
  const path = followMaximum(maximum, maxima, uncertainty);
  const largestMaximum = new Float64Array(rows);
  const finalMaximum = new Float64Array(rows);
  const logarithm = new Float64Array(rows);
  const overflows = new Uint8Array(rows);
  const mostReach = new Float64Array(rows);
  const origin = new Float64Array(rows);
  const blocks = path.map(() => emptyBlock(rows));
  for (let i = 0; i < rows; i++) {
    for (const { low, high } of path)
      if (high[i] >= leastLasting(path, i))
        largestMaximum[i] = Math.max(largestMaximum[i], Math.abs(low[i]), Math.abs(high[i]));
    const last = path.at(-1);
    const lastLow = last?.low[i] ?? 0;
    const lastHigh = last?.high[i] ?? 0;
    origin[i] = (lastLow + lastHigh) / 2;
    finalMaximum[i] = Math.max(Math.abs(lastLow), Math.abs(lastHigh));
    logarithm[i] =
      Math.abs(offset) + Math.max(Math.abs(lse[i] - lastLow), Math.abs(lse[i] - lastHigh));
    let later = 0;
    // From the last block back: the effects of later blocks on the sums of this one.
    for (let b = path.length - 1; b >= 0; b--) {
      const { low, high, growth } = path[b];
      const plan = blocks[b];
      if (low[i] === -Infinity || !Number.isFinite(lse[i])) continue;
      const centre = (low[i] + high[i]) / 2;
      const half = (high[i] - low[i]) / 2;
      const inUse = Math.max(Math.abs(low[i]), Math.abs(high[i]));
      const common = commonExponentError(exponent, inUse, offset);
      plan.shift[i] = offset - centre;
      plan.gain[i] = 2 ** (centre - offset - lse[i]);
      const ofExponent = common + largestExponentError(exponent, inUse);
      const wrong = half + uncertainty[i] + ofExponent + roundoff32;
      const relative = growthOf(wrong);
      plan.uncertainty[i] = relative;
      // No score of the kernel is farther above its maximum than the threshold, however far both may be off:
      // then only the exponent's own roundings add to it.
      const own = 2 * ofExponent + roundoff32;
      const known = offset + maxima[b][i] + uncertainty[i] - low[i];
      const limit = offset + maximum.threshold + own;
      const reach = Math.min(known + ofExponent, limit);
      const isKnown = rounding.isOfWeights && relative <= largestKnownError;
      const isOver =
        Math.min(2 ** known * (1 + relative), 2 ** limit * (1 + growthOf(own))) >
        rounding.maxFinite;
      if (isOver && !rounding.saturates) overflows[i] = 1;
      if (!isKnown) {
        plan.relative[i] = isOver ? 1 : rounding.relative;
        plan.least[i] = rounding.least * 2 ** (2 * half);
      }
      mostReach[i] = Math.max(mostReach[i], reach);
      if (reach >= largestExponent) overflows[i] = 1;
      plan.commonOfLse[i] = growthOf(common);
      // Weights that share their maximum with the last ones share its error, which cancels.
      const final = commonExponentError(exponent, finalMaximum[i], offset);
      plan.common[i] = later > 0 ? growthOf(common + final) : 0;
      plan.rescales[i] = later;
      if (growth[i] > 0) {
        plan.multiplied[i] = 1;
        later += rescaleFactorError(growth[i], scaleError);
      }
    }
  }
  return { blocks, origin, largestMaximum, finalMaximum, logarithm, reach: mostReach, overflows };
}
