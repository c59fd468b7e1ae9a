import { formats, nextDown, unitRoundoff } from '../../formats/index.js';

/** Conditions that bound the exponent x of a weight P = exp2(x). */
export interface LagConditions {
  /** log2 by which a row's maximum may lag: FlashAttention-4's rescale threshold, an fp32 number. */
  readonly threshold: number;
  /** FlashAttention-4's max_offset, an fp32 number. */
  readonly offset: number;
  /** A bound on |m·c|: the scores' maxima in log2, scale included; an fp32 number. */
  readonly scoreExponent: number;
}

/** u = 2^-24: fp32 rounds z to nearest within u·|rn(z)|, and so within u·B where |rn(z)| ≤ B. */
const u = unitRoundoff(formats.fp32);

/** The amount that the roundings of the bias add to x: see `largestExponent`. */
function biasExcess({ offset, scoreExponent }: Omit<LagConditions, 'threshold'>): number {
  const ofOffset = offset === 0 ? 0 : u * (scoreExponent + Math.abs(offset));
  return u * scoreExponent + ofOffset;
}

/**
 * The largest exponent x, an fp32 number, that FlashAttention-4 can compute for any key of any input
 * whose maxima satisfy |m·c| ≤ B, with a scale c > 0.
 *
 * Theorem. Let T be the threshold and o the offset. Then x ≤ rn(T·(1+u)² + o + u·B), with another
 * u·(B + |o|) inside for o ≠ 0.
 *
 * Proof. Let m be the maximum in use and M the largest score so far, so that every score s ≤ M.
 * (1) Where m < M, the rescale was skipped because y = rn(rn(M − m)·c) ≤ T. As rounding moves a
 * number by at most u times its result, M − m ≤ rn(M − m)·(1+u) and rn(M − m)·c ≤ T·(1+u), hence
 * (s − m)·c ≤ T·(1+u)². A difference of fp32 numbers that underflows is exact.
 * (2) μ = rn(m·c) is off by at most u·B, since |m·c| ≤ B implies |μ| ≤ B.
 * (3) bias = rn(o − μ) is exact for o = 0, else off by at most u·(B + |o|).
 * (4) s·c + bias = (s − m)·c + (m·c − μ) + o + (bias − (o − μ)) is at most the sum of these, and x is
 * its rounding (one fused multiply-add), which preserves order.
 *
 * The bound is evaluated in fp64 and its rounding to fp32 taken upwards where it is in doubt.
 */
export function largestExponent({ threshold, offset, scoreExponent }: LagConditions): number {
  const sum = threshold * (1 + u) ** 2 + offset + biasExcess({ offset, scoreExponent });
  // fp64 sums a few terms: 2^-50 relative covers their roundings.
  return Math.fround(sum + Math.abs(sum) * 2 ** -50);
}

/**
 * The largest threshold, an fp32 number, for which every exponent x is at most `limit`; null where
 * x may exceed it even without a lag.
 * @param limit an fp32 number
 */
export function largestThreshold(
  limit: number,
  conditions: Omit<LagConditions, 'threshold'>,
): number | null {
  if (largestExponent({ ...conditions, threshold: 0 }) > limit) return null;
  // Rounding to x ≤ limit allows half an ulp more than this; a threshold is not chosen that closely.
  const room = limit - conditions.offset - biasExcess(conditions);
  let threshold = Math.max(Math.fround(room / (1 + u) ** 2), 0);
  while (threshold > 0 && largestExponent({ ...conditions, threshold }) > limit)
    threshold = nextDown(formats.fp32, threshold);
  return threshold;
}
