/** Between half an ulp and one ulp and a half of any number, as a fraction of it: 0.625·2^−52. */
const nudge = 0.625 * Number.EPSILON;

/** Below 2^−1021 the gap between neighbours is the smallest subnormal. */
const evenlySpaced = 2 ** -1021;
/** From here up the product with `nudge` is a normal number. */
const nudgeIsNormal = 2 ** -960;
const scale = 2 ** 100;

/**
 * The smallest fp64 value greater than value: IEEE 754-2019 nextUp.
 *
 * +∞ gives +∞, −∞ the most negative finite value, NaN gives NaN, the smallest negative subnormal
 * gives −0, and either zero the smallest positive subnormal.
 */
export function nextUpFloat64(value: number): number {
  const magnitude = Math.abs(value);
  if (magnitude >= nudgeIsNormal) {
    return value === -Infinity ? -Number.MAX_VALUE : value + magnitude * nudge;
  }
  if (magnitude >= evenlySpaced) {
    return (value * scale + magnitude * scale * nudge) / scale;
  }
  return value === -Number.MIN_VALUE ? -0 : value + Number.MIN_VALUE;
}

/** The largest fp64 value less than value: IEEE 754-2019 nextDown, the mirror of `nextUpFloat64`. */
export function nextDownFloat64(value: number): number {
  return -nextUpFloat64(-value);
}
