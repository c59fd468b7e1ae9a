import { reciprocalSignificand } from './rcp.js';
import { reciprocalSquareRootSignificand } from './rsqrt.js';

/** The high words of fp64 +∞, of NaN as the unit gives it, and of 1; all lie above a low word of zeros. */
const infinity = 0x7ff00000;
const nan = 0x7fffffff;
const hidden = 0x00100000;

/** A significand of 24 bits without its three lowest, which a high word of fp64 has no room for. */
function packed(exponent: number, significand: number): number {
  return (exponent + 1022) * hidden + (significand >>> 3);
}

/**
 * NVIDIA's `rcp.approx.ftz.f64` from the high word of x to the high word of the result: 1/x truncated to 20 bits of
 * fraction, of the 23 that {@link rcpApproxFtz} gives. The low word counts as zeros and the result's is zero, so a NaN
 * whose high word is ∞'s gives ±0. Subnormal inputs count as zeros of their sign, subnormal results flush to them.
 * Equal to an H200 for all 2^20 high words of two binades and for every exponent of both signs.
 */
export function rcpApproxFtzFloat64(high: number): number {
  const magnitude = high & 0x7fffffff;
  const sign = high >>> 31 === 0 ? 0 : 0x80000000;
  if (magnitude > infinity) return nan;
  if (magnitude === infinity) return sign;
  if (magnitude < hidden) return sign + infinity;
  const exponent = (magnitude >>> 20) - 1023;
  const result = packed(-exponent - 1, reciprocalSignificand((magnitude & 0xfffff) << 3));
  return sign + (result < hidden ? 0 : result);
}

/**
 * NVIDIA's `rsqrt.approx.ftz.f64` from the high word of x to the high word of the result: 1/√x truncated to 20 bits of
 * fraction, of the 23 that {@link rsqrtApproxFtz} gives. The low word counts as zeros and the result's is zero.
 * Subnormal inputs count as zeros of their sign; a negative x gives NaN. Equal to an H200 for all 2^20 high words of two
 * binades and for every exponent of both signs.
 */
export function rsqrtApproxFtzFloat64(high: number): number {
  const magnitude = high & 0x7fffffff;
  const isNegative = high >>> 31 !== 0;
  if (magnitude > infinity) return nan;
  if (magnitude < hidden) return (isNegative ? 0x80000000 : 0) + infinity;
  if (isNegative) return nan;
  if (magnitude === infinity) return 0;
  const exponent = (magnitude >>> 20) - 1023;
  const position = ((exponent & 1) << 23) | ((magnitude & 0xfffff) << 3);
  return packed(-(exponent >> 1) - 1, reciprocalSquareRootSignificand(position));
}
