// AssemblyScript: where the numbers of a tile of 64 queries and 64 keys are, and what their errors follow from. ../pair-loops.ts
// places them. Blocks of [64 × 64] numbers, queries first, are one behind the other, in the order of their enumerations.

/**
 * Bytes from a block to the next: two lines of a cache more than a block has, since the same places of blocks at multiples of 32 kB
 * would drive one another out of it.
 */
export const blockBytes: usize = 32896;

/** Facts about pairs: `KnownPairs`. */
export enum Known {
  dot,
  dotSize,
  product,
  productSize,
  dotPartials,
  productPartials,
  addend,
  addendSize,
  factor,
}

/** P, the slope and dP with their errors: `WeighedPairs`. */
export enum Weighed {
  weight,
  weightError,
  typicalWeight,
  weightVariance,
  commonWeight,
  slope,
  slopeError,
  typicalSlope,
  slopeVariance,
  derivative,
  derivativeError,
  typicalDerivative,
  derivativeVariance,
  commonDerivative,
}

/** Errors of one number for each pair: `PairErrors`. Errors at worst and variances have a block for each technique. */
export enum Errors {
  worst,
  variance = 6,
  value = 12,
  unshifted,
  sloped,
  known,
  byOthers,
  systematic = 19,
  ofWeights,
  ofScores,
  ofProducts,
  ofMeans,
}

/** Numbers that are rounded, their errors, and what that does: `Roundings`. */
export enum Rounding {
  numbers,
  errors,
  worst,
  known,
  variance,
  byOthers,
}

/** Parts of a pair's errors that are summed into elements: `pairParts`. */
export enum Part {
  worst,
  magnitude,
  systematic,
  variance,
  known,
  byOthers,
  signed = 8,
  value,
  squares,
  ofWeights,
  ofScores,
  ofProducts,
  ofMeans,
}

/** Techniques of single pairs, by their places: `techniquePlaces`. */
export enum Place {
  lseInput,
  delta,
  pRecompute,
  pRound,
  dpAccumulate,
  dsRound,
}

/** The numbers of a row of queries, in fp64: `RowErrors`. */
export enum Row {
  denominator,
  mean,
  weightShift,
  meanShift,
  weight,
  typicalWeight,
  commonWeight,
  weightVariance,
  worstMean,
  typicalMean,
  commonMean,
  meanVariance,
}

/** Bytes from a row of queries to the next. */
export const rowRecord: usize = 96;

/** Numbers of the rows of one side of a tile, 64 of each: `SideOfTile`. */
export enum Side {
  sizes,
  squares,
  valueSizes,
  valueSquares,
  alikeScores,
  alikeProducts,
  alikeBoth,
}

/** The rounding of an operand: `OperandRounding`. Factors are in fp64. */
@unmanaged
export class Operand {
  isRounded: bool;
  unit: f64;
  least: f64;
  maxFinite: f64;
  largestUnit: f64;
  smallestUnit: f64;
  times: f64;
  units: usize;
  unitCount: i32;
  others: usize;
  otherCount: i32;
}

/** What the errors of pairs follow from: `PairArithmetic`. */
@unmanaged
export class PairRules {
  scale: f64;
  isCapped: bool;
  softcap: f64;
  dropout: f64;
  tellsApart: bool;
  scoresWorst: f64;
  scoresToZero: f64;
  scoresWalk: f64;
  productsWorst: f64;
  productsToZero: f64;
  productsWalk: f64;
  commonScores: f64;
  commonProducts: f64;
  operations: f64;
  operationVariance: f64;
  productRounding: f64;
  weightRounding: f64;
  largestScore: f64;
  largestProduct: f64;
  elementwise: f64;
  elementwiseVariance: f64;
  exponential: f64;
  tanh: f64;
  tanhFloor: f64;
  typicalTanh: f64;
  tanhVariance: f64;
  underflow: f64;
  meanRounding: f64;
  p: Operand;
  weights: Operand;
  ds: Operand;
}

/** The blocks and arrays of a tile, and which of them count. */
@unmanaged
export class PairTile {
  known: usize;
  hasPartials: bool;
  hasAddends: bool;
  hasFactors: bool;
  weighed: usize;
  errors: usize;
  roundings: usize;
  rows: usize;
  /** Places that rows see, three i32 each: the row, where they begin, and where they end. */
  segments: usize;
  queries: usize;
  keys: usize;
  /** Parts of dQ, dK and dV; the number of factors beside the smallest; and whether the parts of fp32 sums count. */
  dq: usize;
  dk: usize;
  dv: usize;
  others: i32;
  isOfSums: bool;
  /** Sums over a tile by row or key: of errors at worst by technique, then of variances, 64 each. */
  shares: usize;
  /** Sums over the keys of each row: `RowSums`. */
  rowSums: usize;
}

/** Number `at` of a block. */
// @inline
export function number(blocks: usize, block: i32, at: usize): f64 {
  return load<f64>(blocks + <usize>block * blockBytes + at);
}

/** Writes number `at` of a block. */
// @inline
export function write(blocks: usize, block: i32, at: usize, x: f64): void {
  store<f64>(blocks + <usize>block * blockBytes + at, x);
}

/** A number of a row of queries. */
// @inline
export function ofRow(tile: PairTile, row: i32, field: i32): f64 {
  return load<f64>(tile.rows + <usize>row * rowRecord + ((<usize>field) << 3));
}

/** The number of a row or key on its side of a tile. */
// @inline
export function ofSide(side: usize, field: i32, row: i32): f64 {
  return load<f64>(side + ((<usize>(field * 64 + row)) << 3));
}

/** x². */
// @inline
export function square(x: f64): f64 {
  return x * x;
}
