import { interpolate, type Interpolator, type Segment, truncatedSquare } from './interpolation.js';
import { canonicalNanBits, infinityBits, oneBits, truncateToFloat32 } from './float32-bits.js';

/** The unit's interpolation of tanh between two powers of two. */
export interface TanhBinade {
  /** Number of leading fraction bits that choose the segment. */
  readonly indexBits: number;
  /** log2 of the unit of the interpolated sum. */
  readonly unitExponent: number;
  readonly interpolator: Interpolator;
}

/** The interpolated binades start at 2^-8. */
export const tanhFirstExponent = -8;

/** The binade from 2^exponent, whose c1 has `guardBits` bits below 2^(exponent − 24). */
function binade(
  exponent: number,
  indexBits: number,
  guardBits: number,
  segments: readonly Segment[],
): TanhBinade {
  return {
    indexBits,
    unitExponent: exponent - 24 - guardBits,
    interpolator: {
      c0Weight: 2 ** (guardBits - 1),
      c2Weight: 1,
      bias: 0,
      unitsPerUlp: 1,
      segments,
    },
  };
}

/**
 * The binades from 2^-8 to 2^2 in ascending order. Recovered from the results of an H200 by
 * fixtures/capture/scalar/recover_coefficients.py.
 */
export const tanhBinades: readonly TanhBinade[] = [
  binade(-8, 0, 7, [[33554432, 16384, -2]]),
  binade(-7, 0, 7, [[33553920, 16383, -6]]),
  binade(-6, 0, 7, [[33551872, 16381, -26]]),
  binade(-5, 1, 9, [
    [33543552, 32738, -82],
    [50294912, 32697, -110],
  ]),
  binade(-4, 1, 8, [
    [33510784, 16323, -159],
    [50184576, 16244, -222],
  ]),
  binade(-3, 2, 10, [
    [33380768, 32266, -559],
    [41604960, 31986, -676],
    [49749952, 31648, -790],
    [57801216, 31253, -891],
  ]),
  binade(-2, 2, 11, [
    [32872320, 61636, -4138],
    [40628832, 59560, -4824],
    [48097792, 57143, -5372],
    [55239936, 54451, -5788],
  ]),
  binade(-1, 2, 11, [
    [31012000, 51571, -12324],
    [37218624, 45374, -12576],
    [42624416, 39063, -12076],
    [47238688, 33011, -11086],
  ]),
  binade(0, 3, 13, [
    [25555088, 54922, -19646],
    [27155824, 45102, -16956],
    [28463888, 36634, -14288],
    [29522280, 29501, -11846],
    [30371904, 23590, -9684],
    [31049608, 18760, -7844],
    [31587440, 14850, -6288],
    [32012536, 11716, -5018],
  ]),
  binade(1, 4, 16, [
    [16173728, 36874, -15946],
    [16305345, 28942, -12590],
    [16408581, 22674, -9898],
    [16489421, 17746, -7784],
    [16552657, 13870, -6094],
    [16602069, 10835, -4776],
    [16640655, 8457, -3734],
    [16670765, 6599, -2920],
    [16694254, 5146, -2278],
    [16712570, 4012, -1778],
    [16726848, 3127, -1386],
    [16737977, 2437, -1082],
    [16746648, 1899, -842],
    [16753405, 1479, -654],
    [16758669, 1152, -508],
    [16762770, 897, -394],
  ]),
  binade(2, 3, 15, [
    [8383000, 659, -876],
    [8386544, 243, -324],
    [8387848, 89, -116],
    [8388328, 33, -44],
    [8388506, 12, -16],
    [8388570, 5, -8],
    [8388594, 2, -4],
    [8388602, 1, -2],
  ]),
];

/**
 * NVIDIA's `tanh.approx.f32`: about tanh x, from the bits of x to the bits of the result, with the
 * sign of x. Below 2^-8 the result is x itself, subnormal numbers included; from 8 on it is ±1. In
 * between, every binade has its own segments, the leading 17 bits of x below the segment index are
 * used, and the sum is truncated toward zero. NaN gives 0x7fffffff. Equal to an H200 for all 2^32
 * inputs.
 */
export function tanhApprox(bits: number): number {
  const negative = bits >>> 31 !== 0;
  const magnitude = bits & 0x7fffffff;
  if (magnitude > infinityBits) return canonicalNanBits;
  const exponent = (magnitude >>> 23) - 127;
  if (exponent < tanhFirstExponent) return bits >>> 0;
  const binade = exponent - tanhFirstExponent;
  if (binade >= tanhBinades.length) return (negative ? 0x80000000 : 0) + oneBits;
  const { indexBits, unitExponent, interpolator } = tanhBinades[binade];
  const fraction = magnitude & 0x7fffff;
  const x = (fraction >>> (6 - indexBits)) & 0x1ffff;
  const sum = interpolate(interpolator, fraction >>> (23 - indexBits), x, truncatedSquare(x));
  return truncateToFloat32(negative, sum, unitExponent);
}
