import { interpolate, type Interpolator, type Segment, truncatedSquare } from './interpolation.js';
import {
  canonicalNanBits,
  hiddenBit,
  infinityBits,
  packFloat32,
  smallestNormalBits,
  isSubnormal,
  scaled,
} from './float32-bits.js';

/**
 * Coefficients of 1/√significand over [1, 4), 64 segments for each binade, in ascending order.
 * Recovered from the results of an H200 by fixtures/capture/scalar/recover_coefficients.py; equal to those that envytools lists for NVIDIA's G80 of 2006.
 */
const reciprocalSquareRootSegments: readonly Segment[] = [
  [67108861, -65531, 754],
  [66590637, -64024, 725],
  [66084239, -62575, 698],
  [65589219, -61179, 672],
  [65105160, -59835, 648],
  [64631661, -58539, 625],
  [64168345, -57289, 603],
  [63714853, -56083, 582],
  [63270843, -54919, 562],
  [62835986, -53794, 543],
  [62409972, -52708, 526],
  [61992511, -51657, 508],
  [61583314, -50641, 492],
  [61182118, -49658, 476],
  [60788659, -48706, 461],
  [60402696, -47784, 446],
  [60023990, -46891, 433],
  [59652323, -46026, 420],
  [59287472, -45186, 407],
  [58929237, -44372, 395],
  [58577418, -43582, 383],
  [58231825, -42815, 372],
  [57892277, -42071, 362],
  [57558601, -41348, 352],
  [57230629, -40645, 342],
  [56908203, -39962, 332],
  [56591163, -39298, 323],
  [56279364, -38652, 314],
  [55972662, -38023, 305],
  [55670920, -37412, 298],
  [55374004, -36816, 290],
  [55081792, -36237, 283],
  [54794158, -35672, 275],
  [54510983, -35122, 268],
  [54232150, -34586, 262],
  [53957556, -34063, 255],
  [53687091, -33553, 248],
  [53420652, -33056, 242],
  [53158142, -32571, 236],
  [52899461, -32098, 231],
  [52644524, -31636, 225],
  [52393234, -31185, 220],
  [52145511, -30745, 215],
  [51901269, -30315, 210],
  [51660427, -29895, 205],
  [51422906, -29485, 201],
  [51188634, -29084, 196],
  [50957532, -28691, 191],
  [50729534, -28308, 187],
  [50504567, -27933, 183],
  [50282567, -27566, 179],
  [50063470, -27208, 176],
  [49847213, -26857, 172],
  [49633733, -26513, 168],
  [49422973, -26177, 165],
  [49214874, -25848, 162],
  [49009384, -25525, 158],
  [48806447, -25209, 154],
  [48606010, -24900, 151],
  [48408021, -24597, 148],
  [48212432, -24300, 145],
  [48019192, -24009, 143],
  [47828262, -23724, 140],
  [47639589, -23444, 137],
  [47453129, -46337, 533],
  [47086690, -45272, 513],
  [46728614, -44247, 493],
  [46378581, -43260, 475],
  [46036298, -42310, 459],
  [45701484, -41393, 442],
  [45373873, -40510, 427],
  [45053204, -39657, 412],
  [44739242, -38834, 398],
  [44431751, -38038, 384],
  [44130517, -37270, 371],
  [43835325, -36527, 359],
  [43545981, -35809, 348],
  [43262290, -35113, 336],
  [42984071, -34440, 326],
  [42711157, -33789, 316],
  [42443371, -33157, 306],
  [42180561, -32545, 297],
  [41922576, -31952, 288],
  [41669265, -31376, 279],
  [41420489, -30817, 271],
  [41176119, -30275, 263],
  [40936023, -29749, 256],
  [40700079, -29237, 248],
  [40468167, -28740, 241],
  [40240174, -28257, 235],
  [40015993, -27788, 229],
  [39795520, -27331, 222],
  [39578647, -26887, 217],
  [39365286, -26454, 210],
  [39155335, -26033, 205],
  [38948711, -25623, 199],
  [38745319, -25224, 195],
  [38545084, -24835, 190],
  [38347923, -24456, 185],
  [38153754, -24086, 180],
  [37962506, -23726, 176],
  [37774105, -23374, 171],
  [37588482, -23031, 167],
  [37405570, -22697, 163],
  [37225300, -22370, 159],
  [37047613, -22051, 155],
  [36872445, -21740, 152],
  [36699741, -21436, 148],
  [36529438, -21139, 145],
  [36361486, -20849, 142],
  [36195831, -20565, 138],
  [36032415, -20288, 136],
  [35871195, -20017, 133],
  [35712121, -19752, 130],
  [35555146, -19492, 126],
  [35400221, -19239, 124],
  [35247302, -18991, 122],
  [35096351, -18748, 119],
  [34947318, -18510, 117],
  [34800172, -18277, 114],
  [34654867, -18049, 112],
  [34511368, -17826, 110],
  [34369639, -17607, 107],
  [34229640, -17393, 105],
  [34091338, -17183, 103],
  [33954697, -16977, 101],
  [33819687, -16775, 99],
  [33686279, -16578, 97],
];

/** The unit of the sum is 2^-40 relative to 1/2 ≤ 1/√significand ≤ 1; the table covers [1, 4). */
export const reciprocalSquareRootInterpolator: Interpolator = {
  c0Weight: 2 ** 14,
  c2Weight: 4,
  bias: 0x7fff,
  unitsPerUlp: 2 ** 16,
  segments: reciprocalSquareRootSegments,
};

/**
 * 1/√(1 + position/2^23) below 2^23 and 1/√(2·(position/2^23)) from there on, in units of 2^-24, approximate and
 * truncated: from 2^23 to 2^24.
 */
export function reciprocalSquareRootSignificand(position: number): number {
  // The table's sum at 1 would come out one ulp too small.
  if (position === 0) return 2 * hiddenBit;
  const x = position & 0x1ffff;
  return interpolate(reciprocalSquareRootInterpolator, position >>> 17, x, truncatedSquare(x));
}

/**
 * NVIDIA's `rsqrt.approx.ftz.f32`: about 1/√x, from the bits of x to the bits of the result.
 * Subnormal inputs count as zeros of their sign. ±0 gives ±∞, +∞ gives +0, a negative x or NaN gives
 * 0x7fffffff, and powers of four are exact. Equal to an H200 for all 2^32 inputs.
 */
export function rsqrtApproxFtz(bits: number): number {
  const negative = bits >>> 31 !== 0;
  const magnitude = bits & 0x7fffffff;
  if (magnitude > infinityBits) return canonicalNanBits;
  if (magnitude < smallestNormalBits) return (negative ? 0x80000000 : 0) + infinityBits;
  if (negative) return canonicalNanBits;
  if (magnitude === infinityBits) return 0;
  const exponent = (magnitude >>> 23) - 127;
  const halfExponent = exponent >> 1;
  const position = ((exponent & 1) << 23) | (magnitude & 0x7fffff);
  return packFloat32(false, -halfExponent - 1, reciprocalSquareRootSignificand(position));
}

/**
 * NVIDIA's `rsqrt.approx.f32`, as `rsqrt.approx.ftz.f32` but for subnormal inputs: 2^12/√(2^24·x), which is exact. Equal to an H200 for all 2^32
 * inputs.
 */
export function rsqrtApprox(bits: number): number {
  return isSubnormal(bits)
    ? scaled(rsqrtApproxFtz(scaled(bits, 2 ** 24)), 2 ** 12)
    : rsqrtApproxFtz(bits);
}
