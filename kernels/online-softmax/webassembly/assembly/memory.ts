// AssemblyScript: what the stages of a forward work on, and the recipe that they follow.

/** The numbers of a recipe, and addresses of its tables. */
@unmanaged
export class ForwardRecipe {
  scale: f32;
  /** Of the exponent: below it a row is not rescaled; 0 for none. */
  threshold: f32;
  maxOffset: f32;
  /** Of the polynomial; its coefficients are fp64. */
  degree: i32;
  coefficients: usize;
  // Tables of the special functions, as src/simd/assembly/special-functions.ts takes them.
  exp2Segments: usize;
  log2Segments: usize;
  reciprocalSegments: usize;
  squares: usize;
  exp2Shift: i32;
  log2Shift: i32;
  reciprocalShift: i32;
  /** As `convert4` takes it. */
  outFormat: usize;
  /** A byte for each four columns, a bit for each that the polynomial computes. */
  polynomialLanes: usize;
  /** Whether the LSE is fused. */
  fusesLse: bool;
  /** Rescaled rows, skipped rows, rescaled warps, skipped warps, i32. */
  counters: usize;
  /** As `convert4` takes it; a weight has 1 or 2 bytes. */
  weightFormat: usize;
  weightBytes: i32;
  /** Descale of V. */
  outFactor: f32;
  // With a quad of threads a row.
  fusesExponent: bool;
  /** Whether the exponential flushes subnormals. */
  flushes: bool;
  /** Whether α is 0 for a row that saw −∞ alone. */
  checksInfinity: bool;
  softmaxScale: f32;
  emptyLse: f32;
  /** Whether 1 / l is divided. */
  divides: bool;
}

/** The arrays of a tile of queries, with one block of keys, a multiple of 8. */
@unmanaged
export class ForwardTile {
  recipe: ForwardRecipe;
  keys: i32;
  /** [rows][keys], fp32; and the bit patterns of weights. */
  scores: usize;
  weights: usize;
  /** Begin and end of each row's columns, i32. */
  visible: usize;
  // One fp32 number a row, and four sums with a quad of threads.
  maxima: usize;
  sums: usize;
  alphas: usize;
  lse: usize;
  /** How often each row was rescaled, i32. */
  rescales: usize;
  /** Sums of the output, fp32; and its bit patterns of 16 bits. */
  out: usize;
  result: usize;
}
