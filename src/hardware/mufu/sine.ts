import { bitsOfFloat32, float32Of } from '../../arith/index.js';
import { interpolate, type Interpolator, type Segment, truncatedSquare } from './interpolation.js';
import {
  canonicalNanBits,
  infinityBits,
  signBit,
  truncateToFloat32,
  isSubnormal,
} from './float32-bits.js';

/**
 * Coefficients of sin(2π t) over a quarter of a turn, 64 segments, in ascending order. Recovered from the results of an
 * H200 by fixtures/capture/scalar/recover_coefficients.py.
 */
const sineSegments: readonly Segment[] = [
  [0, 51474, -14],
  [823463, 51460, -48],
  [1646436, 51412, -76],
  [2468414, 51336, -110],
  [3288906, 51226, -137],
  [4107418, 51088, -171],
  [4923453, 50918, -201],
  [5736526, 50716, -229],
  [6546141, 50486, -262],
  [7351816, 50224, -292],
  [8153060, 49932, -322],
  [8949394, 49610, -352],
  [9740335, 49258, -381],
  [10525413, 48876, -410],
  [11304145, 48466, -441],
  [12076070, 48026, -470],
  [12840725, 47556, -497],
  [13597643, 47058, -525],
  [14346367, 46532, -553],
  [15086452, 45978, -581],
  [15817450, 45396, -608],
  [16538916, 44788, -637],
  [17250422, 44152, -664],
  [17951542, 43488, -688],
  [18641840, 42800, -715],
  [19320916, 42084, -738],
  [19988350, 41344, -763],
  [20643746, 40580, -790],
  [21286703, 39790, -812],
  [21916841, 38978, -839],
  [22533776, 38140, -859],
  [23137138, 37280, -881],
  [23726565, 36398, -904],
  [24301698, 35494, -926],
  [24862194, 34568, -946],
  [25407711, 33622, -967],
  [25937924, 32656, -988],
  [26452518, 31668, -1004],
  [26951170, 30664, -1025],
  [27433593, 29640, -1043],
  [27899488, 28598, -1059],
  [28348583, 27538, -1074],
  [28780594, 26464, -1093],
  [29195273, 25372, -1107],
  [29592364, 24266, -1123],
  [29971632, 23144, -1136],
  [30332846, 22008, -1148],
  [30675788, 20860, -1162],
  [31000253, 19698, -1172],
  [31306042, 18526, -1185],
  [31592974, 17342, -1196],
  [31860879, 16146, -1203],
  [32109590, 14942, -1213],
  [32338961, 13728, -1220],
  [32548845, 12508, -1230],
  [32739132, 11278, -1236],
  [32909694, 10042, -1242],
  [33060432, 8800, -1247],
  [33191257, 7552, -1250],
  [33302087, 6302, -1258],
  [33392857, 5046, -1260],
  [33463517, 3786, -1260],
  [33514014, 2526, -1263],
  [33544326, 1264, -1265],
];

/** Fraction bits of a result that are kept: results are multiples of 2^-37. */
const gridBits = 37;

/** The unit of the sum is 2^-38. */
export const sineInterpolator: Interpolator = {
  c0Weight: 2 ** 13,
  c2Weight: 2,
  bias: 0,
  unitsPerUlp: 2,
  segments: sineSegments,
};

/** 1/(2π) rounded to nearest fp32, by which the instruction before the unit multiplies. */
const turnsPerRadian = 0.15915493667125702;

/** A turn in the unit's fixed point, and a quarter of it. */
const turn = 2 ** 25;
const quarter = 2 ** 23;

/** x/(2π) as the instruction before the unit computes it: one multiplication, rounded toward zero. */
function turnsOf(bits: number): number {
  const exact = float32Of(bits) * turnsPerRadian;
  const nearest = Math.fround(exact);
  if (Math.abs(nearest) <= Math.abs(exact)) return nearest;
  return float32Of(bitsOfFloat32(nearest) - 1);
}

/**
 * The sine of an angle in turns, to which `added` units of 2^-25 turns are added: the magnitude's fraction is truncated
 * to 25 bits, and falling quarters are mirrored by one's complement.
 */
function sineOfTurns(turns: number, added: number, isOdd: boolean): number {
  const magnitude = Math.abs(turns);
  const fraction = magnitude - Math.floor(magnitude);
  const angle = (Math.floor(fraction * turn) + added) % turn;
  const quadrant = Math.floor(angle / quarter);
  const rest = angle % quarter;
  const position = quadrant % 2 === 1 ? quarter - 1 - rest : rest;
  const x = position & 0x1ffff;
  const sine = interpolate(sineInterpolator, position >>> 17, x, truncatedSquare(x));
  const isNegative = quadrant >= 2 !== (isOdd && (turns < 0 || Object.is(turns, -0)));
  return sine === 0 ? (isNegative ? signBit : 0) : truncateToFloat32(isNegative, sine, -gridBits);
}

function ofAngle(bits: number, added: number, isOdd: boolean): number {
  return (bits & 0x7fffffff) >= infinityBits
    ? canonicalNanBits
    : sineOfTurns(turnsOf(bits), added, isOdd);
}

/** Flushes a subnormal number's bits to the zero of its sign. */
function flushed(bits: number): number {
  return isSubnormal(bits) ? (bits & signBit) >>> 0 : bits;
}

/**
 * NVIDIA's `sin.approx.f32`: about sin x, from the bits of x to the bits of the result. x is multiplied by 1/(2π) in
 * fp32, rounded toward zero, and the fraction of that truncated to 25 bits: an error near 2^-24.5 of the result's
 * scale near 0, and 0 for |x| below 2π·2^-25. ±∞ and NaN give 0x7fffffff. Equal to an H200 on its captured blocks of 2^20 inputs.
 */
export function sinApprox(bits: number): number {
  return ofAngle(bits, 0, true);
}

/** NVIDIA's `sin.approx.ftz.f32`: subnormal inputs count as zeros of their sign; else as `sin.approx.f32`. */
export function sinApproxFtz(bits: number): number {
  return sinApprox(flushed(bits));
}

/** NVIDIA's `cos.approx.f32`: the sine a quarter of a turn further on; the sign of x does not count. */
export function cosApprox(bits: number): number {
  return ofAngle(bits, quarter, false);
}

/** NVIDIA's `cos.approx.ftz.f32`: subnormal inputs count as zeros; the result is that of `cos.approx.f32` all the same. */
export function cosApproxFtz(bits: number): number {
  return cosApprox(flushed(bits));
}
