import { bitsOfFloat32, float32Of } from '../../arith/index.js';
import { interpolate, type Interpolator, type Segment, truncatedSquare } from './interpolation.js';
import {
  canonicalNanBits,
  infinityBits,
  oneBits,
  smallestNormalBits,
  truncateToFloat32,
  isSubnormal,
  scaled,
} from './float32-bits.js';

/**
 * Coefficients of log2 significand over [1, 2), 64 segments, in ascending order.
 * Recovered from the results of an H200 by fixtures/capture/scalar/recover_coefficients.py; equal to those that envytools lists for NVIDIA's G80 of 2006.
 */
const log2Segments: readonly Segment[] = [
  [4, 47272, -727],
  [1501079, 46545, -705],
  [2979245, 45840, -685],
  [4435175, 45156, -665],
  [5869538, 44492, -646],
  [7282959, 43847, -627],
  [8676041, 43221, -610],
  [10049360, 42612, -592],
  [11403480, 42020, -576],
  [12738914, 41444, -559],
  [14056181, 40884, -544],
  [15355766, 40339, -530],
  [16638137, 39809, -518],
  [17903740, 39292, -504],
  [19153020, 38788, -491],
  [20386385, 38297, -479],
  [21604230, 37818, -466],
  [22806952, 37351, -455],
  [23994914, 36896, -445],
  [25168473, 36451, -433],
  [26327980, 36018, -425],
  [27473760, 35594, -414],
  [28606142, 35180, -404],
  [29725435, 34776, -396],
  [30831935, 34380, -385],
  [31925930, 33994, -377],
  [33007703, 33616, -368],
  [34077522, 33247, -361],
  [35135647, 32886, -354],
  [36182338, 32532, -346],
  [37217831, 32186, -339],
  [38242363, 31847, -331],
  [39256170, 31516, -326],
  [40259469, 31191, -319],
  [41252482, 30872, -311],
  [42235412, 30561, -307],
  [43208461, 30255, -300],
  [44171827, 29955, -293],
  [45125706, 29662, -289],
  [46070272, 29374, -283],
  [47005713, 29091, -276],
  [47932206, 28814, -271],
  [48849917, 28542, -266],
  [49759005, 28276, -262],
  [50659642, 28014, -257],
  [51551982, 27757, -253],
  [52436166, 27505, -249],
  [53312349, 27257, -244],
  [54180673, 27013, -238],
  [55041280, 26774, -234],
  [55894305, 26540, -232],
  [56739875, 26309, -227],
  [57578131, 26082, -223],
  [58409188, 25859, -219],
  [59233176, 25640, -216],
  [60050206, 25424, -211],
  [60860396, 25213, -209],
  [61663866, 25004, -204],
  [62460727, 24799, -201],
  [63251077, 24598, -199],
  [64035034, 24399, -195],
  [64812688, 24204, -192],
  [65584146, 24012, -189],
  [66349505, 23823, -186],
];

/** The unit of the sum is 2^-38. */
export const log2Interpolator: Interpolator = {
  c0Weight: 2 ** 12,
  c2Weight: 2,
  bias: 0x3345,
  unitsPerUlp: 2 ** 2,
  segments: log2Segments,
};
/** Fraction bits of the interpolated logarithm that are kept. */
const gridBits = 36;

/**
 * NVIDIA's `lg2.approx.ftz.f32`: about log2 x, from the bits of x to the bits of the result.
 * Subnormal inputs count as zero. ±0 gives −∞, +∞ gives +∞, a negative x or NaN gives 0x7fffffff, and
 * 1 gives +0. The logarithm is formed as a fixed-point number, exponent plus interpolated fraction,
 * a negative one is negated by one's complement, and the magnitude truncated. Equal to an H200 for
 * all 2^32 inputs.
 */
export function lg2ApproxFtz(bits: number): number {
  const magnitude = bits & 0x7fffffff;
  if (magnitude > infinityBits) return canonicalNanBits;
  if (magnitude < smallestNormalBits) return 0x80000000 + infinityBits;
  if (bits >>> 31 !== 0) return canonicalNanBits;
  if (magnitude === infinityBits) return infinityBits;
  if (magnitude === oneBits) return 0;
  const exponent = (magnitude >>> 23) - 127;
  const fraction = magnitude & 0x7fffff;
  const x = fraction & 0x1ffff;
  const interpolated = interpolate(log2Interpolator, fraction >>> 17, x, truncatedSquare(x));
  const fixed = exponent * 2 ** gridBits + interpolated;
  return fixed < 0
    ? truncateToFloat32(true, -fixed - 1, -gridBits)
    : truncateToFloat32(false, fixed, -gridBits);
}

/**
 * NVIDIA's `lg2.approx.f32`, as `lg2.approx.ftz.f32` but for subnormal inputs: that of 2^24·x, less 24 in fp32. Equal to an H200 for all 2^32
 * inputs.
 */
export function lg2Approx(bits: number): number {
  const logarithm = lg2ApproxFtz(isSubnormal(bits) ? scaled(bits, 2 ** 24) : bits);
  if (!isSubnormal(bits) || logarithm === canonicalNanBits) return logarithm;
  return bitsOfFloat32(float32Of(logarithm) - 24);
}
