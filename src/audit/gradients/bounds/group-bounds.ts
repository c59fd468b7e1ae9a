import type { Tensor } from '../../../problem/index.js';
import type { CombinedBounds } from '../../bounds/index.js';
import { emptyTechniqueShares, type TechniqueShares } from './gradient-techniques.js';

/**
 * Bounds of the elements of a gradient. All of them are of output − (exact + shift), the radius of the oracle included:
 * `total` its magnitude at worst, `systematic` the part of that which neither averages out nor is known, `deviation`
 * the root mean square of the rest, `known` the magnitude of the output's rounding where that is certain.
 */
export interface GradientBound extends CombinedBounds {
  /**
   * The shift of the element by the kernel's own O and LSE, where they are given: an error that came in and was not made here. Signed, in
   * the gradient's unit, before the output is rounded; 0 where nothing is known, and where premises leave open whether the kernel makes its
   * row sums of the stored O (then its magnitude is in `total` and `systematic`).
   */
  readonly shift: Float64Array;
  /**
   * The most by which errors may move the element before its output is rounded, where that is less than half an ulp and its rounding is
   * not certain: 12 deviations and the part that does not average out; else 0.
   */
  readonly reach: Float64Array;
  /** The sum of the roundings of operands that are certain where a kernel makes them, signed; it is in `deviation` too. */
  readonly operands: Float64Array;
  /** The same where another factor was there when operands were rounded: one array for each that may have been there. */
  readonly byOthers: Float64Array[];
  /** The part of `deviation` that elements of a row do not share; null where they may share all of it. */
  readonly apart: Float64Array | null;
}

/** Bounds of the elements of a gradient, technique by technique. */
export interface GradientTechniqueBound extends GradientBound {
  /** Shares of each technique in the rows. */
  readonly techniques: TechniqueShares;
}

/** The bounds of one query head. */
export interface HeadBounds {
  /** Counted over [batch, heads]. */
  readonly head: number;
  /** [queries, qkDim]; null where the oracle has none. */
  readonly dq: GradientTechniqueBound | null;
  /** [queries]: the variance of the relative error that all P of a row share. */
  readonly weightVariance: Float64Array;
}

/** The bounds of one head of K and V and of the query heads that share it. */
export interface GroupBounds {
  /** Counted over [batch, kv heads]. */
  readonly kvHead: number;
  readonly heads: readonly HeadBounds[];
  /** [keys of the group of the oracle, qkDim] and [.., vDim]; null where the oracle has none. */
  readonly dk: GradientTechniqueBound | null;
  readonly dv: GradientTechniqueBound | null;
}

/** The stored results of the kernel's own forward pass, as the backward pass read them; null where they are not known. */
export interface StoredForward {
  /** [batch, heads, queries, vDim] */
  readonly out: Tensor | null;
  /** [batch, heads, queries], natural logarithms. */
  readonly lse: Tensor | null;
}

/**
 * Arrays for `rows` rows, all 0.
 * @param others number of other factors that operands may have had
 */
export function emptyGradientBound(
  rows: number,
  dim: number,
  others: number,
): GradientTechniqueBound {
  const numbers = () => new Float64Array(rows * dim);
  return {
    total: numbers(),
    systematic: numbers(),
    known: numbers(),
    deviation: numbers(),
    shift: numbers(),
    reach: numbers(),
    operands: numbers(),
    byOthers: Array.from({ length: others }, numbers),
    apart: null,
    techniques: emptyTechniqueShares(rows),
  };
}
