import { formats } from '../formats/index.js';

/** Between half an ulp and one ulp and a half of any fp32 number, as a fraction of it. */
const nudge = 0.625 * 2 ** -23;
/** As much for the subnormals, whose ulp is 2^−149. */
const smallestNudge = 0.75 * 2 ** -149;

const { maxFinite } = formats.fp32;

/** The fp32 value above a given one: IEEE 754-2019 nextUp. */
export function nextUpFloat32(value: number): number {
  if (value === -Infinity) return -maxFinite;
  return Math.fround(value + Math.max(Math.abs(value) * nudge, smallestNudge));
}

/** The fp32 value below a given one: IEEE 754-2019 nextDown. */
export function nextDownFloat32(value: number): number {
  if (value === Infinity) return maxFinite;
  return Math.fround(value - Math.max(Math.abs(value) * nudge, smallestNudge));
}
