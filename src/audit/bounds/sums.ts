import {
  type KernelArithmetic,
  roundoff32,
  type SumArithmetic,
  type ValueTiles,
} from '../../../kernels/index.js';
import { factorsError } from '../premises/premises.js';
import type { RowTerms, TechniqueBound, WeightError } from './technique-bound.js';
import { hardwareExp2Error } from '../../hardware/index.js';
import { formats, smallestNormal } from '../../formats/index.js';

// The errors of sums over keys: `rescale`, `pv-accumulate` and `row-sum`, sections 6 to 8 of docs/theory/bounds.md,
// and the loss of a sum of products, which `qk-accumulate` shares.

/**
 * The largest loss of one fused sum, in units of the largest of the accumulator before, the accumulator after
 * and the largest product: each of the products and the accumulator less than one unit of the alignment
 * (truncation), the sum less than one unit of the result. Theorem 2 of docs/theory/bounds.md.
 */
export function fusedSumLoss(arithmetic: SumArithmetic & { readonly kind: 'fused' }): number {
  const { productsPerSum, alignedFractionBits, resultFractionBits } = arithmetic;
  return (productsPerSum + 1) * 2 ** -alignedFractionBits + 2 ** -resultFractionBits;
}

/**
 * The largest loss of adding `products` products to an accumulator, in units of a number that exceeds every
 * accumulator on the way and every product.
 */
export function chainLoss(arithmetic: SumArithmetic, products: number): number {
  switch (arithmetic.kind) {
    case 'fused':
      return Math.ceil(products / arithmetic.productsPerSum) * fusedSumLoss(arithmetic);
    case 'sequential':
      // A rounding of the product and one of the sum for each.
      return 2 * products * roundoff32;
    case 'any-order':
      // Roundings of partial sums that carry earlier ones: below the linear order by nothing.
      return Math.expm1(products * arithmetic.perProduct);
  }
}

/** The growth beyond which a factor 2^-growth is flushed to zero: earlier sums are lost. */
const largestGrowth = 125.5;

/**
 * The relative error of one factor α = ex2.approx.ftz((m − m′)·c) whose exponent is −growth (log2):
 * that of the unit, and that of the difference, of c and of the product. 1 where α may be flushed to
 * zero. Theorem 6 of docs/theory/bounds.md.
 */
export function rescaleFactorError(growth: number, scaleError: number): number {
  if (growth > largestGrowth) return 1;
  const exponent = growth * (2 * roundoff32 + Math.abs(scaleError)) * (1 + 2 ** -20);
  return hardwareExp2Error + (1 + 2 ** -20) * Math.expm1(Math.LN2 * exponent);
}

/**
 * The error of all factors that a weight may be multiplied by where they are no better than the weights:
 * one for every tile of keys but the last. 0 where they are.
 */
export function coarseFactors({ maximum }: KernelArithmetic, keys: number): number {
  return maximum.kind === 'unknown' ? factorsError(maximum.factors, keys) : 0;
}

/** The errors of the factors as relative errors of the weights that they multiply. */
export function rescaleWeightError({ errors }: RowTerms): WeightError {
  return { mean: errors.rescales, rootMeanSquare: Math.sqrt(errors.rescalesSquared) };
}

/** `rescale`: factors, and the rounding of the products with them, of O and of the row sum. Theorem 6. */
export const rescaleBound: TechniqueBound = {
  elements: (row) => {
    const { rootMeanSquare } = rescaleWeightError(row);
    const { rescaledSum, rescaleUnderflow } = row.errors;
    return { scatter: rootMeanSquare, rescaled: 1, size: rescaledSum, constant: rescaleUnderflow };
  },
  lse: (row) => rescaleWeightError(row).mean + row.errors.rescaledSum,
};

/** Bounds on the error that a tile of keys adds to the sums O += P·V. Theorem 7 of docs/theory/bounds.md. */
interface TileLoss {
  /** The loss in units of the largest of the sum before, the sum after and the products. */
  readonly relative: number;
  /** The loss for each unit of Σ w: truncation to the exponent that a subnormal value counts as. */
  readonly perMass: number;
  /**
   * The loss for each unit of the largest value, before the division by the row sum: truncation to the
   * exponent that a subnormal weight counts as.
   */
  readonly perValue: number;
  /** Underflow of the sums, before the division by the row sum. */
  readonly fixed: number;
}

/**
 * The loss of a tile of `keys` keys whose order is known; zeros where it is not (see `anyOrderLoss`).
 *
 * @param leastValue a number of V below it counts as that, as `smallestNormalOf` has it
 */
export function tileLoss(
  { values, weightFormat, underflow }: KernelArithmetic,
  keys: number,
  leastValue: number,
): TileLoss {
  switch (values.kind) {
    case 'fused': {
      const sums = Math.ceil(keys / values.productsPerSum);
      const loss = sums * fusedSumLoss(values);
      return {
        relative: chainLoss(values, keys),
        perMass: loss * leastValue,
        perValue: loss * smallestNormal(formats[weightFormat]),
        fixed: sums * underflow.sums,
      };
    }
    case 'sequential':
      return {
        relative: chainLoss(values, keys),
        perMass: 0,
        perValue: 0,
        fixed: 2 * keys * underflow.sums,
      };
    case 'any-order':
      return { relative: 0, perMass: 0, perValue: 0, fixed: 0 };
  }
}

/** The loss of one product where the order is not known, in units of Σ w|v| of the whole row; else 0. */
export function anyOrderLoss(arithmetic: SumArithmetic): number {
  return arithmetic.kind === 'any-order' ? arithmetic.perProduct : 0;
}

/** The loss of all products where the order is not known, in units of Σ w|v| of the whole row; else 0. */
function anyOrderLosses(arithmetic: SumArithmetic, keys: number): number {
  return arithmetic.kind === 'any-order' ? chainLoss(arithmetic, keys) : 0;
}

/** The largest total of products and sums that underflow; `tileLoss` has that of known orders. */
export function sumUnderflow({ values, underflow }: KernelArithmetic, keys: number): number {
  return (values.kind === 'any-order' ? keys + 1 : 1) * underflow.sums;
}

/** The largest error of the sums P·V of tiles of keys, in units of Σ w|v|; 0 where there are none. */
export function valueTilesLoss(tiles: ValueTiles | null | undefined): number {
  if (tiles === null || tiles === undefined) return 0;
  const { keys, productsPerSum, roundoff } = tiles;
  return Math.expm1(Math.ceil(keys / productsPerSum) * roundoff) * (1 + 2 ** -20);
}

/** `pv-accumulate`: the sums of p·v. Theorem 7. */
export const pvAccumulateBound: TechniqueBound = {
  elements: ({ arithmetic, keys }) => {
    const loss =
      anyOrderLosses(arithmetic.values, keys) +
      arithmetic.partials +
      valueTilesLoss(arithmetic.valueTiles);
    const underflow = sumUnderflow(arithmetic, keys);
    return { accumulated: 1, magnitude: loss, constant: underflow };
  },
  lse: () => 0,
};

/**
 * The largest loss of adding the weights of a tile to the row sum, relative to the sum after it. Every
 * addition rounds a partial sum, none of which exceeds it. Theorem 8 of docs/theory/bounds.md.
 *
 * @param keys the number of keys of the tile
 * @param endsBlock where the kernel adds by blocks, their additions count at the block's last tile
 */
export function rowSumLoss(
  { rowSumAdditions, rowSumAddition }: KernelArithmetic,
  keys: number,
  endsBlock: boolean,
): number {
  if (rowSumAdditions > 0) return endsBlock ? rowSumAdditions * rowSumAddition : 0;
  return keys * rowSumAddition;
}

/** The largest sum of weights that fp32, or a wider format, is taken to hold. */
const largestRowSum = 2 ** 126;

/** Whether the sum of `keys` weights, none above 2^reach, may leave its range, whatever the values are. */
export function rowSumOverflows(
  { largestSum }: KernelArithmetic,
  keys: number,
  reach: number,
): boolean {
  return keys * 2 ** reach >= Math.max(largestSum, largestRowSum);
}

/** `row-sum`: the sums of p. Theorem 8. */
export const rowSumBound: TechniqueBound = {
  elements: ({ errors: { rowSum } }) => ({ size: rowSum }),
  lse: ({ errors }) => errors.rowSum,
};
