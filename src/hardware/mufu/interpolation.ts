/**
 * The piecewise-quadratic interpolator inside NVIDIA's special function unit. A table splits an
 * interval into segments; in each, with x the bits of the input below the segment index,
 *
 *   sum = c0·c0Weight + c1·x + c2·c2Weight·square(x) + bias
 *
 * in fixed point, and the result is the sum truncated. The structure was
 * published for a 2005 design (Oberman and Siu, "A high-performance area-efficient multifunction
 * interpolator", ARITH-17) and measured on NVIDIA's G80 by the envytools project, whose constants
 * for ex2, lg2, rcp and rsqrt an H200 still reproduces bit for bit.
 */
export interface Interpolator {
  /** The weight of one unit of c0, in units of the sum. */
  readonly c0Weight: number;
  /** The weight of one unit of c2, in units of the sum. */
  readonly c2Weight: number;
  /** The rounding constant, in units of the sum. */
  readonly bias: number;
  /** Units of the sum in the last place that is kept. */
  readonly unitsPerUlp: number;
  readonly segments: readonly Segment[];
}

/** The coefficients of one segment, as integers. */
export type Segment = readonly [c0: number, c1: number, c2: number];

/**
 * The sum of segment `index` at x, an exact integer below 2^53, truncated to the last place kept and
 * in units of it. `x` has 16 or 17 bits; `square` is its {@link truncatedSquare}.
 */
export function interpolate(
  interpolator: Interpolator,
  index: number,
  x: number,
  square: number,
): number {
  const segment = interpolator.segments[index];
  const sum =
    segment[0] * interpolator.c0Weight +
    segment[1] * x +
    segment[2] * interpolator.c2Weight * square +
    interpolator.bias;
  return Math.floor(sum / interpolator.unitsPerUlp);
}

/**
 * The unit's square of a 17-bit x, about x²/2^19 and never above it. Each row of the multiplication
 * loses the bits below 2^18 before the rows are added, and the sum then loses its lowest bit, so the
 * result can be several units below ⌊x²/2^19⌋.
 */
export function truncatedSquare(x: number): number {
  // Written out, since a loop takes twice as long. Rows 0 and 1 lie below 2^18 altogether.
  const sum =
    partialProduct(x, 2) +
    partialProduct(x, 3) +
    partialProduct(x, 4) +
    partialProduct(x, 5) +
    partialProduct(x, 6) +
    partialProduct(x, 7) +
    partialProduct(x, 8) +
    partialProduct(x, 9) +
    partialProduct(x, 10) +
    partialProduct(x, 11) +
    partialProduct(x, 12) +
    partialProduct(x, 13) +
    partialProduct(x, 14) +
    partialProduct(x, 15) +
    partialProduct(x, 16);
  return sum >>> 1;
}

/** Row `row` of x·x, x·2^row where that bit of x is set, without its bits below 2^18. */
function partialProduct(x: number, row: number): number {
  return (x >>> (18 - row)) & -((x >>> row) & 1);
}
