import { interpolate, type Interpolator, type Segment, truncatedSquare } from './interpolation.js';
import {
  canonicalNanBits,
  infinityBits,
  packFloat32,
  smallestNormalBits,
  isSubnormal,
  scaled,
} from './float32-bits.js';

/**
 * Coefficients of 1/significand over [1, 2), 128 segments, in ascending order.
 * Recovered from the results of an H200 by fixtures/capture/scalar/recover_coefficients.py; equal to those that envytools lists for NVIDIA's G80 of 2006.
 */
const reciprocalSegments: readonly Segment[] = [
  [67108862, -65534, 1013],
  [66588640, -64522, 989],
  [66076420, -63533, 966],
  [65572019, -62567, 945],
  [65075260, -61622, 923],
  [64585974, -60699, 902],
  [64103990, -59797, 883],
  [63629144, -58914, 863],
  [63161282, -58051, 845],
  [62700252, -57207, 827],
  [62245903, -56381, 809],
  [61798089, -55572, 791],
  [61356675, -54781, 774],
  [60921522, -54007, 758],
  [60492497, -53249, 742],
  [60069472, -52507, 727],
  [59652323, -51780, 711],
  [59240928, -51068, 696],
  [58835168, -50371, 682],
  [58434928, -49688, 669],
  [58040097, -49019, 656],
  [57650567, -48363, 642],
  [57266229, -47721, 631],
  [56886984, -47091, 618],
  [56512727, -46473, 605],
  [56143364, -45868, 594],
  [55778796, -45274, 582],
  [55418932, -44692, 572],
  [55063684, -44121, 561],
  [54712959, -43560, 549],
  [54366675, -43011, 540],
  [54024745, -42471, 529],
  [53687091, -41942, 519],
  [53353631, -41423, 510],
  [53024286, -40913, 501],
  [52698985, -40412, 490],
  [52377649, -39921, 482],
  [52060210, -39439, 474],
  [51746594, -38965, 465],
  [51436735, -38500, 457],
  [51130563, -38043, 449],
  [50828015, -37594, 441],
  [50529027, -37153, 433],
  [50233536, -36720, 426],
  [49941480, -36294, 418],
  [49652801, -35876, 412],
  [49367440, -35464, 403],
  [49085340, -35060, 397],
  [48806447, -34663, 390],
  [48530703, -34272, 383],
  [48258058, -33888, 377],
  [47988462, -33511, 371],
  [47721859, -33140, 366],
  [47458202, -32774, 358],
  [47197442, -32415, 353],
  [46939532, -32062, 348],
  [46684427, -31714, 341],
  [46432080, -31373, 337],
  [46182444, -31036, 331],
  [45935478, -30705, 326],
  [45691141, -30379, 320],
  [45449390, -30059, 316],
  [45210183, -29743, 310],
  [44973479, -29432, 305],
  [44739242, -29127, 302],
  [44507434, -28826, 297],
  [44278014, -28529, 291],
  [44050946, -28237, 287],
  [43826197, -27950, 283],
  [43603728, -27667, 279],
  [43383508, -27388, 274],
  [43165501, -27114, 271],
  [42949673, -26843, 266],
  [42735993, -26577, 263],
  [42524428, -26314, 258],
  [42314948, -26056, 256],
  [42107523, -25801, 251],
  [41902120, -25550, 248],
  [41698712, -25302, 243],
  [41497268, -25058, 240],
  [41297762, -24818, 237],
  [41100166, -24581, 233],
  [40904451, -24348, 231],
  [40710591, -24117, 226],
  [40518559, -23890, 223],
  [40328331, -23667, 222],
  [40139881, -23446, 218],
  [39953184, -23228, 214],
  [39768216, -23014, 212],
  [39584953, -22802, 208],
  [39403369, -22593, 205],
  [39223446, -22388, 204],
  [39045157, -22184, 199],
  [38868482, -21984, 197],
  [38693399, -21787, 196],
  [38519886, -21592, 193],
  [38347922, -21399, 189],
  [38177487, -21209, 186],
  [38008561, -21022, 184],
  [37841121, -20837, 182],
  [37675152, -20655, 180],
  [37510631, -20475, 178],
  [37347541, -20297, 175],
  [37185864, -20122, 173],
  [37025580, -19949, 171],
  [36866671, -19778, 169],
  [36709122, -19609, 166],
  [36552913, -19443, 165],
  [36398028, -19278, 161],
  [36244450, -19116, 160],
  [36092162, -18956, 159],
  [35941149, -18797, 155],
  [35791394, -18641, 154],
  [35642882, -18487, 153],
  [35495597, -18334, 150],
  [35349526, -18184, 149],
  [35204650, -18035, 147],
  [35060957, -17888, 145],
  [34918434, -17743, 143],
  [34777062, -17600, 143],
  [34636833, -17458, 140],
  [34497730, -17318, 138],
  [34359739, -17180, 137],
  [34222847, -17043, 135],
  [34087042, -16908, 133],
  [33952311, -16775, 132],
  [33818639, -16643, 131],
  [33686017, -16513, 130],
];

/** The unit of the sum is 2^-39 relative to 1/2 ≤ 1/significand ≤ 1. */
export const reciprocalInterpolator: Interpolator = {
  c0Weight: 2 ** 13,
  c2Weight: 1,
  bias: 0x47e7,
  unitsPerUlp: 2 ** 15,
  segments: reciprocalSegments,
};

/** 1/(1 + fraction/2^23) in units of 2^-24, approximate and truncated: from 2^23 to 2^24. */
export function reciprocalSignificand(fraction: number): number {
  const x = fraction & 0xffff;
  // The squarer takes 17 bits, one more than a segment of this table holds.
  return interpolate(reciprocalInterpolator, fraction >>> 16, x, truncatedSquare(x << 1));
}

/**
 * NVIDIA's `rcp.approx.ftz.f32`: about 1/x, from the bits of x to the bits of the result. Subnormal
 * inputs count as zeros of their sign, subnormal results flush to them. ±0 gives ±∞, ±∞ gives ±0,
 * NaN gives 0x7fffffff. Equal to an H200 for all 2^32 inputs.
 */
export function rcpApproxFtz(bits: number): number {
  const negative = bits >>> 31 !== 0;
  const magnitude = bits & 0x7fffffff;
  const sign = negative ? 0x80000000 : 0;
  if (magnitude > infinityBits) return canonicalNanBits;
  if (magnitude === infinityBits) return sign;
  if (magnitude < smallestNormalBits) return sign + infinityBits;
  const exponent = (magnitude >>> 23) - 127;
  return packFloat32(negative, -exponent - 1, reciprocalSignificand(magnitude & 0x7fffff));
}

/** The magnitude 2^126, above which the reciprocal is below 2^-126 or the largest such. */
const largeBits = 0x7e800000;

/**
 * NVIDIA's `rcp.approx.f32`: as `rcp.approx.ftz.f32`, but subnormal inputs and results are kept. A subnormal x is multiplied by 2^24
 * and its result again; an x above 2^126 by 1/4, and its result again, rounded to nearest even. Equal to an H200 for all 2^32 inputs.
 */
export function rcpApprox(bits: number): number {
  const magnitude = bits & 0x7fffffff;
  const isLarge = magnitude > largeBits && magnitude < infinityBits;
  const factor = isSubnormal(bits) ? 2 ** 24 : isLarge ? 2 ** -2 : 1;
  return factor === 1 ? rcpApproxFtz(bits) : scaled(rcpApproxFtz(scaled(bits, factor)), factor);
}
