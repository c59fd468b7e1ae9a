import type { Blocks } from './blocks.js';

/** The errors that the pairs of a row of queries share; made by `createRowErrors`, all but the first three 0 before. */
export interface RowErrors {
  /** The logarithm of the row sum, and D. */
  readonly denominator: number;
  readonly mean: number;
  /** The shifts of P (relative) and of D by the stored LSE and O, where they are known to be used. */
  readonly weightShift: number;
  readonly meanShift: number;
  /**
   * The largest relative error that all P of the row share, and the largest error of D beside that; the parts that do not average
   * out.
   */
  readonly weight: number;
  readonly typicalWeight: number;
  /** The shared error of P, signed, from an error that all scores of the forward pass share. */
  readonly commonWeight: number;
  /** The variance of the relative error that all P of the row share, beside that. */
  readonly weightVariance: number;
  readonly worstMean: number;
  readonly typicalMean: number;
  /** The error of D, signed, from an error that all D share, relative to themselves. */
  readonly commonMean: number;
  /** The variance of D's error. */
  readonly meanVariance: number;
}

/** The numbers of a row, in the order of the loops. */
export const rowNumbers = [
  ...(['denominator', 'mean', 'weightShift', 'meanShift'] as const),
  ...(['weight', 'typicalWeight', 'commonWeight', 'weightVariance'] as const),
  ...(['worstMean', 'typicalMean', 'commonMean', 'meanVariance'] as const),
] as const satisfies readonly (keyof RowErrors)[];

/** Facts about the pairs of a tile, [64 × 64]: null for those that the problem does not have. */
export interface KnownPairs {
  /** q·k and dO·v, and the same of magnitudes. */
  readonly dot: Float64Array;
  readonly dotSize: Float64Array;
  readonly product: Float64Array;
  readonly productSize: Float64Array;
  /** The mean squares of their partial sums; null where magnitudes take their place. */
  readonly dotPartials: Float64Array | null;
  readonly productPartials: Float64Array | null;
  /** The addends of scores, and their sizes. */
  readonly addend: Float64Array | null;
  readonly addendSize: Float64Array | null;
  /** The factors of dropout. */
  readonly factor: Float64Array | null;
}

/** The facts about pairs that are in memory, in the order of the loops. */
export const knownBlocks = [
  ...(['dot', 'dotSize', 'product', 'productSize'] as const),
  ...(['dotPartials', 'productPartials', 'addend', 'addendSize', 'factor'] as const),
] as const satisfies readonly (keyof KnownPairs)[];

/** The results for the pairs of a tile, in the order of the loops. */
export const weighedBlocks = [
  ...(['weight', 'weightError', 'typicalWeight', 'weightVariance', 'commonWeight'] as const),
  ...(['slope', 'slopeError', 'typicalSlope', 'slopeVariance'] as const),
  ...(['derivative', 'derivativeError', 'typicalDerivative', 'derivativeVariance'] as const),
  'commonDerivative',
] as const;

/**
 * Results for the pairs of a tile, [64 × 64]; meaningless where a row does not see a key. P with the row's shift, its error without the
 * row's, the part that does not average out, the variance of the rest; `commonWeight` is its error, signed, from an error that all
 * scores share. The softcap's slope, and dP, with the same numbers.
 */
export type WeighedPairs = Blocks<(typeof weighedBlocks)[number]>;
