// AssemblyScript: where the arrays of a tile of 64 queries and 64 keys are. ../memory.ts places them, and says what they hold.

/** Addresses of the arrays, fp64 but where it is said, and the lengths that are not 64. */
@unmanaged
export class BoundTile {
  // [64 × 64]
  scores: usize;
  scoreError: usize;
  rounding: usize;
  known: usize;
  variance: usize;
  // [64 × columns]: the values; sums of the tile, and the running ones; bounds that depend on the accumulator.
  values: usize;
  tileSum: usize;
  tileSquares: usize;
  sum: usize;
  squares: usize;
  moved: usize;
  predicted: usize;
  spread: usize;
  magnitude: usize;
  accumulated: usize;
  rescaled: usize;
  // By row; low and high are i32.
  low: usize;
  high: usize;
  maxima: usize;
  largest: usize;
  errors: usize;
  shift: usize;
  gain: usize;
  uncertainty: usize;
  relative: usize;
  least: usize;
  mass: usize;
  slack: usize;
  perTile: usize;
  floor: usize;
  rescale: usize;
  // By column.
  exponential: usize;
  /** 1 where the polynomial computes the exponential, else 0. */
  isPolynomial: usize;
  /** What sums in fp32 are made of: v² in fp64; v, |v| and v² in fp32; a matrix of the rows, and its factors. See `narrowMoments`. */
  valueSquares: usize;
  narrowValues: usize;
  narrowSizes: usize;
  narrowSquares: usize;
  narrowRows: usize;
  ofRows: usize;
  /** Ten numbers a row: see `weigh`. */
  sums: usize;
  /** Counts of exponents, 2^tableBits (u16) for each row. */
  tables: usize;
  /** What `finishElements` works on: columns of a row's elements, the techniques' forms, and a bit (i32) for each of their coefficients. */
  elements: usize;
  forms: usize;
  has: usize;
  columns: i32;
  tableBits: i32;
}
