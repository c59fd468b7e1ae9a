import { interpolate, type Interpolator, type Segment, truncatedSquare } from './interpolation.js';
import { canonicalNanBits, hiddenBit, infinityBits, oneBits, packFloat32 } from './float32-bits.js';

/**
 * Coefficients of 2^fraction over [0, 1), 64 segments, in ascending order.
 * Recovered from the results of an H200 by fixtures/capture/scalar/recover_coefficients.py; equal to those that envytools lists for NVIDIA's G80 of 2006.
 */
const exp2Segments: readonly Segment[] = [
  [33554432, 22713, 494],
  [33919815, 22960, 501],
  [34289179, 23210, 506],
  [34662562, 23463, 511],
  [35040015, 23718, 518],
  [35421574, 23977, 521],
  [35807289, 24238, 527],
  [36197206, 24502, 532],
  [36591369, 24768, 541],
  [36989822, 25038, 546],
  [37392613, 25311, 551],
  [37799794, 25586, 559],
  [38211406, 25865, 564],
  [38627501, 26147, 568],
  [39048128, 26431, 577],
  [39473334, 26719, 583],
  [39903170, 27010, 589],
  [40337687, 27304, 596],
  [40776934, 27602, 600],
  [41220967, 27902, 609],
  [41669833, 28206, 615],
  [42123589, 28513, 622],
  [42582283, 28824, 627],
  [43045974, 29138, 633],
  [43514714, 29455, 641],
  [43988558, 29776, 647],
  [44467562, 30100, 655],
  [44951783, 30428, 661],
  [45441275, 30759, 670],
  [45936098, 31094, 677],
  [46436311, 31432, 686],
  [46941968, 31775, 691],
  [47453132, 32121, 699],
  [47969864, 32471, 705],
  [48492222, 32824, 715],
  [49020266, 33182, 721],
  [49554062, 33543, 730],
  [50093671, 33908, 739],
  [50639156, 34277, 748],
  [51190579, 34651, 753],
  [51748008, 35028, 763],
  [52311507, 35409, 773],
  [52881143, 35795, 779],
  [53456980, 36185, 787],
  [54039088, 36579, 796],
  [54627535, 36977, 806],
  [55222390, 37380, 813],
  [55823722, 37787, 822],
  [56431604, 38198, 833],
  [57046103, 38614, 842],
  [57667294, 39035, 849],
  [58295251, 39460, 858],
  [58930045, 39889, 870],
  [59571751, 40324, 877],
  [60220444, 40763, 887],
  [60876202, 41207, 896],
  [61539101, 41655, 909],
  [62209217, 42109, 917],
  [62886631, 42568, 925],
  [63571421, 43031, 938],
  [64263669, 43500, 946],
  [64963455, 43973, 959],
  [65670860, 44452, 969],
  [66385969, 44936, 980],
];

/** The unit of the sum is 2^-38 relative to 1 ≤ 2^fraction ≤ 2. */
export const exp2Interpolator: Interpolator = {
  c0Weight: 2 ** 13,
  c2Weight: 1,
  bias: 0x77e2,
  unitsPerUlp: 2 ** 15,
  segments: exp2Segments,
};

/**
 * NVIDIA's `ex2.approx.ftz.f32`: about 2^x, from the bits of x to the bits of the result. Subnormal
 * results flush to +0. x is first cut to 23 fraction bits toward zero, and the fraction of a
 * negative x is negated by one's complement, so that the error reaches 1.4 ulp for x > 0 and 2 ulp
 * for x < 0. x ≥ 128 gives +∞, x ≤ −127 gives +0, NaN gives 0x7fffffff. Equal to an H200 for all
 * 2^32 inputs.
 */
export function exp2ApproxFtz(bits: number): number {
  const negative = bits >>> 31 !== 0;
  const magnitude = bits & 0x7fffffff;
  if (magnitude > infinityBits) return canonicalNanBits;
  const exponent = (magnitude >>> 23) - 127;
  if (exponent >= 7) return negative ? 0 : infinityBits;
  if (exponent < -23) return oneBits;
  const significand = (magnitude & 0x7fffff) | hiddenBit;
  const fixed = exponent >= 0 ? significand << exponent : significand >>> -exponent;
  let integer = fixed >>> 23;
  let fraction = fixed & 0x7fffff;
  if (negative) {
    integer = fraction === 0 ? -integer : ~integer;
    if (fraction !== 0) fraction ^= 0x7fffff;
  }
  const x = fraction & 0x1ffff;
  const interpolated = interpolate(exp2Interpolator, fraction >>> 17, x, truncatedSquare(x));
  return packFloat32(false, integer, interpolated);
}

const minus126Bits = 0xc2fc0000;
const minusInfinityBits = 0xff800000;

/**
 * NVIDIA's `ex2.approx.f32`: as {@link exp2ApproxFtz}, but with subnormal results. The unit itself
 * has none: for x < −126 ptxas halves x before the unit and squares the result, rounded to nearest
 * even. Equal to an H200 for all 2^32 inputs.
 */
export function exp2Approx(bits: number): number {
  const pattern = bits >>> 0;
  if (pattern <= minus126Bits || pattern >= minusInfinityBits) return exp2ApproxFtz(pattern);
  // Halving a number of this size takes one from its exponent field.
  return squareTinyFloat32(exp2ApproxFtz(pattern - hiddenBit));
}

/** The bits of r² rounded to nearest even, subnormal results kept, for the bits of 0 ≤ r ≤ 2^-63. */
function squareTinyFloat32(bits: number): number {
  if (bits === 0) return 0;
  const significand = (bits & 0x7fffff) | hiddenBit;
  const exponent = (bits >>> 23) - 150;
  // Up to 2^-126 the bit pattern counts the units of 2^-149.
  return roundToEven(significand * significand * 2 ** (2 * exponent + 149));
}

/** A number from 0 to 2^52 rounded to an integer, ties to even. */
function roundToEven(value: number): number {
  const below = Math.floor(value);
  const rest = value - below;
  return rest > 0.5 || (rest === 0.5 && below % 2 === 1) ? below + 1 : below;
}
