import { interpolate, type Interpolator, type Segment, truncatedSquare } from './interpolation.js';
import {
  canonicalNanBits,
  infinityBits,
  packFloat32,
  signBit,
  smallestNormalBits,
} from './float32-bits.js';
import { isSubnormal, scaled } from './subnormal-inputs.js';

/**
 * Coefficients of √significand over [1, 4), 64 segments for each binade, in ascending order. Recovered from the
 * results of an H200 by fixtures/capture/scalar/recover_coefficients.py.
 */
const squareRootSegments: readonly Segment[] = [
  [33554432, 65535, -506],
  [33815560, 65029, -494],
  [34074687, 64534, -482],
  [34331858, 64051, -472],
  [34587117, 63578, -461],
  [34840506, 63116, -452],
  [35092065, 62664, -443],
  [35341834, 62221, -434],
  [35589850, 61787, -424],
  [35836149, 61363, -417],
  [36080767, 60947, -408],
  [36323738, 60539, -399],
  [36565095, 60139, -391],
  [36804868, 59748, -385],
  [37043090, 59363, -376],
  [37279789, 58987, -370],
  [37514995, 58617, -363],
  [37748736, 58254, -357],
  [37981038, 57898, -351],
  [38211928, 57548, -344],
  [38441431, 57204, -337],
  [38669572, 56867, -332],
  [38896375, 56535, -325],
  [39121863, 56209, -319],
  [39346059, 55889, -315],
  [39568985, 55574, -309],
  [39790662, 55264, -304],
  [40011110, 54960, -299],
  [40230351, 54660, -294],
  [40448403, 54366, -290],
  [40665286, 54076, -285],
  [40881019, 53790, -280],
  [41095618, 53510, -277],
  [41309104, 53233, -272],
  [41521491, 52961, -268],
  [41732798, 52693, -265],
  [41943040, 52429, -261],
  [42152234, 52168, -255],
  [42360394, 51912, -252],
  [42567536, 51660, -249],
  [42773676, 51410, -244],
  [42978827, 51165, -242],
  [43183003, 50923, -238],
  [43386218, 50685, -236],
  [43588486, 50449, -231],
  [43789819, 50218, -229],
  [43990231, 49989, -226],
  [44189735, 49763, -222],
  [44388341, 49541, -221],
  [44586063, 49321, -217],
  [44782912, 49104, -214],
  [44978899, 48890, -211],
  [45174037, 48678, -207],
  [45368334, 48471, -207],
  [45561804, 48264, -202],
  [45754455, 48061, -200],
  [45946298, 47861, -199],
  [46137344, 47662, -194],
  [46327602, 47467, -194],
  [46517082, 47273, -190],
  [46705793, 47082, -188],
  [46893744, 46894, -187],
  [47080946, 46707, -184],
  [47267406, 46523, -182],
  [47453133, 92680, -714],
  [47822424, 91964, -697],
  [48188884, 91266, -684],
  [48552579, 90582, -668],
  [48913570, 89914, -655],
  [49271916, 89260, -641],
  [49627674, 88620, -626],
  [49980900, 87994, -613],
  [50331648, 87380, -599],
  [50679968, 86780, -588],
  [51025910, 86192, -577],
  [51369523, 85616, -567],
  [51710853, 85050, -554],
  [52049944, 84496, -544],
  [52386840, 83952, -531],
  [52721584, 83420, -524],
  [53054216, 82896, -512],
  [53384774, 82384, -505],
  [53713299, 81880, -496],
  [54039827, 81384, -484],
  [54364394, 80898, -476],
  [54687033, 80422, -470],
  [55007782, 79952, -459],
  [55326670, 79492, -453],
  [55643731, 79038, -443],
  [55958995, 78594, -439],
  [56272493, 78156, -431],
  [56584254, 77726, -425],
  [56894307, 77302, -417],
  [57202680, 76884, -408],
  [57509399, 76474, -401],
  [57814491, 76072, -399],
  [58117981, 75674, -391],
  [58419895, 75282, -383],
  [58720256, 74898, -379],
  [59019089, 74518, -372],
  [59316416, 74146, -370],
  [59612260, 73778, -364],
  [59906644, 73414, -356],
  [60199587, 73058, -353],
  [60491112, 72706, -348],
  [60781240, 72358, -341],
  [61069988, 72016, -336],
  [61357378, 71678, -330],
  [61643428, 71346, -327],
  [61928157, 71018, -323],
  [62211582, 70694, -317],
  [62493722, 70376, -316],
  [62774594, 70060, -309],
  [63054215, 69750, -306],
  [63332601, 69444, -303],
  [63609770, 69140, -297],
  [63885735, 68842, -294],
  [64160514, 68548, -293],
  [64434121, 68256, -287],
  [64706571, 67968, -282],
  [64977878, 67686, -282],
  [65248058, 67404, -275],
  [65517123, 67128, -273],
  [65785088, 66854, -269],
  [66051966, 66584, -266],
  [66317769, 66318, -264],
  [66582512, 66054, -261],
  [66846206, 65794, -259],
];

/** The unit of the sum is 2^-40; the table covers [1, 4). */
export const squareRootInterpolator: Interpolator = {
  c0Weight: 2 ** 15,
  c2Weight: 2,
  bias: 0x7fff,
  unitsPerUlp: 2 ** 17,
  segments: squareRootSegments,
};

/**
 * NVIDIA's `sqrt.approx.ftz.f32`: about √x, from the bits of x to the bits of the result. Subnormal inputs count as
 * zeros of their sign. ±0 gives ±0, +∞ gives +∞, a negative x or NaN gives 0x7fffffff. Equal to an H200 on its
 * captured blocks of 2^20 inputs (`flashproof conform`).
 */
export function sqrtApproxFtz(bits: number): number {
  const negative = bits >>> 31 !== 0;
  const magnitude = bits & 0x7fffffff;
  if (magnitude > infinityBits) return canonicalNanBits;
  if (magnitude < smallestNormalBits) return negative ? signBit : 0;
  if (negative) return canonicalNanBits;
  if (magnitude === infinityBits) return infinityBits;
  const exponent = (magnitude >>> 23) - 127;
  const position = ((exponent & 1) << 23) | (magnitude & 0x7fffff);
  const x = position & 0x1ffff;
  const root = interpolate(squareRootInterpolator, position >>> 17, x, truncatedSquare(x));
  return packFloat32(false, exponent >> 1, root);
}

/**
 * NVIDIA's `sqrt.approx.f32`, as `sqrt.approx.ftz.f32` but for subnormal inputs: the root of 2^24·x, scaled back by
 * 2^-12, which is exact. So an H200 on all captured blocks.
 */
export function sqrtApprox(bits: number): number {
  return isSubnormal(bits)
    ? scaled(sqrtApproxFtz(scaled(bits, 2 ** 24)), 2 ** -12)
    : sqrtApproxFtz(bits);
}
