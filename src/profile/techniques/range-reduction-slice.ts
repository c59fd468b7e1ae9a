import { reduceRange } from '../../../kernels/index.js';
import { addFloat32, subtractFloat32 } from '../../arith/index.js';
import type { Slice } from '../error-plan.js';
import { bitsOfOrdinal } from '../float32-order.js';

/** The work to do at every input: FlashAttention-4's range reduction, which has no parameters. */
export interface RangeReductionPlan {
  readonly kind: 'range-reduction';
}

/** Counts of inputs of a slice by the outcome of the range reduction x = b + f. */
export interface ReductionCounts {
  readonly inputs: number;
  /** Inputs with b + f ≠ x. */
  readonly inexact: number;
  /** Inputs for which `isReductionExact` contradicts the arithmetic. */
  readonly lawBroken: number;
  /** Inputs with b ≠ ⌊x⌋. */
  readonly notFloor: number;
  readonly fractionIsOne: number;
  /** Inputs with f < 0 or f > 1. */
  readonly fractionOutside: number;
  /** Inputs for which adding 2^23 + 2^22 to nearest even instead of towards −∞ gives another b. */
  readonly nearestDiffers: number;
  /** The largest |b + f − x|, and the first input that has it; 0 and null where all are exact. */
  readonly largestError: number;
  readonly largestErrorAt: number | null;
}

/** Results of a slice for the range reduction. */
export interface SliceReduction {
  readonly kind: 'range-reduction';
  readonly slice: Slice;
  readonly counts: ReductionCounts;
}

/** The range reduction's constant, 2^23 + 2^22, whose ulp is 1. */
const toInteger = 2 ** 23 + 2 ** 22;

/** The exponent of the grid to which the fraction of a negative x of small magnitude is rounded. */
const gridExponent = -24;

/**
 * Whether FlashAttention-4's range reduction of a finite fp32 number −127 ≤ x < 128 is exact, by the law
 * and from its bits alone: always, except for a negative normal x that is not a multiple of 2^-24. For
 * such an x, which lies in (−1/2, 0), ⌊x⌋ = −1 and f = 1 − |x| lies in (1/2, 1), where the fp32 numbers
 * are the multiples of 2^-24. For x ≥ 0 and x ≤ −1 the unit of x is that of f or larger, and a subnormal
 * x counts as zero in the addition that finds b.
 */
export function isReductionExact(bits: number): boolean {
  const isNegative = bits >= 2 ** 31;
  const field = Math.floor(bits / 2 ** 23) % 256;
  if (!isNegative || field === 0) return true;
  // x = significand·2^(field − 150): bits of the significand below the grid.
  const below = gridExponent - (field - 150);
  if (below <= 0) return true;
  const significand = (bits % 2 ** 23) + 2 ** 23;
  return below <= 23 && significand % 2 ** below === 0;
}

/** Creates a function that counts the outcomes of the range reduction at every input of a slice. */
export function createReductionSlices(_plan: RangeReductionPlan): (slice: Slice) => SliceReduction {
  return (slice) => ({ kind: 'range-reduction', slice, counts: countReductions(slice) });
}

function countReductions({ first, last }: Slice): ReductionCounts {
  let [inexact, lawBroken, notFloor, fractionIsOne] = [0, 0, 0, 0];
  let [fractionOutside, nearestDiffers, largestError] = [0, 0, 0];
  let largestErrorAt: number | null = null;
  const bits = new Uint32Array(1);
  const value = new Float32Array(bits.buffer);
  for (let ordinal = first; ordinal <= last; ordinal++) {
    bits[0] = bitsOfOrdinal(ordinal);
    const x = value[0];
    const { integerBits, fraction } = reduceRange(x);
    // For −256 ≤ b < 256 the lowest nine bits of r, its bits shifted up by 23, are b.
    const integer = integerBits >> 23;
    // Exact: b + f has at most 24 bits and lies near x, or x is too small to matter.
    const error = Math.abs(integer + fraction - x);
    if (error !== 0) inexact++;
    if ((error === 0) !== isReductionExact(bits[0])) lawBroken++;
    if (integer !== Math.floor(x)) notFloor++;
    if (fraction === 1) fractionIsOne++;
    if (!(fraction >= 0 && fraction <= 1)) fractionOutside++;
    const nearest = subtractFloat32(addFloat32(x, toInteger), toInteger);
    if (nearest !== integer) nearestDiffers++;
    if (error > largestError) [largestError, largestErrorAt] = [error, ordinal];
  }
  return {
    inputs: last - first + 1,
    inexact,
    lawBroken,
    notFloor,
    fractionIsOne,
    fractionOutside,
    nearestDiffers,
    largestError,
    largestErrorAt,
  };
}

/** Counts of zero. */
export const noReductions: ReductionCounts = {
  inputs: 0,
  inexact: 0,
  lawBroken: 0,
  notFloor: 0,
  fractionIsOne: 0,
  fractionOutside: 0,
  nearestDiffers: 0,
  largestError: 0,
  largestErrorAt: null,
};

/** The sum of both counts; the first input in order keeps the largest error. */
export function mergeReductions(a: ReductionCounts, b: ReductionCounts): ReductionCounts {
  const isSecond =
    b.largestError > a.largestError ||
    (b.largestError === a.largestError && (b.largestErrorAt ?? NaN) < (a.largestErrorAt ?? NaN));
  return {
    inputs: a.inputs + b.inputs,
    inexact: a.inexact + b.inexact,
    lawBroken: a.lawBroken + b.lawBroken,
    notFloor: a.notFloor + b.notFloor,
    fractionIsOne: a.fractionIsOne + b.fractionIsOne,
    fractionOutside: a.fractionOutside + b.fractionOutside,
    nearestDiffers: a.nearestDiffers + b.nearestDiffers,
    largestError: Math.max(a.largestError, b.largestError),
    largestErrorAt: isSecond ? b.largestErrorAt : a.largestErrorAt,
  };
}
