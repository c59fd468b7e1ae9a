/**
 * The piecewise-quadratic interpolator inside NVIDIA's special function unit. A table splits an
 * interval into segments; in each, with x the bits of the input below the segment index,
 *
 *   sum = c0·c0Weight + c1·x + c2·c2Weight·square(x) + bias
 *
 * in fixed point, and the result is the sum truncated to the result's precision. The structure was
 * published for a 2005 design (Oberman and Siu, "A high-performance area-efficient multifunction
 * interpolator", ARITH-17) and measured on NVIDIA's G80 by the envytools project, whose constants
 * for ex2, lg2, rcp and rsqrt an H200 still reproduces bit for bit.
 */
export interface Interpolator {
  /** What one unit in c0 weighs in units of the sum. */
  readonly c0Weight: number;
  /** What one unit in c2 weighs in units of the sum. */
  readonly c2Weight: number;
  /** The rounding constant, in units of the sum. */
  readonly bias: number;
  readonly segments: readonly Segment[];
}

/** The coefficients of one segment, as integers. */
export type Segment = readonly [c0: number, c1: number, c2: number];

/**
 * The sum of segment `index` at x, an exact integer below 2^53. `x` has 16 or 17 bits; `square` is
 * what {@link truncatedSquare} makes of it.
 */
export function interpolate(
  interpolator: Interpolator,
  index: number,
  x: number,
  square: number,
): number {
  const segment = interpolator.segments[index];
  return (
    segment[0] * interpolator.c0Weight +
    segment[1] * x +
    segment[2] * interpolator.c2Weight * square +
    interpolator.bias
  );
}

/**
 * The unit's square of a 17-bit x, about x²/2^19 and never above it. Each row of the multiplication
 * loses the bits below 2^18 before the rows are added, and the sum then loses its lowest bit, so the
 * result can be several units below ⌊x²/2^19⌋. Found by exhaustive comparison with silicon.
 */
export function truncatedSquare(x: number): number {
  let sum = 0;
  // Rows 0 and 1 lie below 2^18 altogether.
  for (let row = 2; row < 17; row++) sum += (x >>> (18 - row)) & -((x >>> row) & 1);
  return sum >>> 1;
}
