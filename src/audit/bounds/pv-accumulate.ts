import { formats, smallestNormal, type FormatName } from '../../formats/index.js';
import type { KernelArithmetic, SumArithmetic } from './kernel-arithmetic.js';
import { chainLoss, fusedSumLoss } from './sum-error.js';
import type { TechniqueBound } from './technique-bound.js';

/** What a tile of keys may add to the error of the sums O += P·V. Theorem 7 of docs/bounds.md. */
export interface TileLoss {
  /** In units of the largest of the sum before, the sum after and the products. */
  readonly relative: number;
  /** For each unit of Σ w: truncation to the exponent that a subnormal value counts as. */
  readonly perMass: number;
  /**
   * For each unit of the largest value, before the division by the row sum: truncation to the exponent
   * that a subnormal weight counts as.
   */
  readonly perValue: number;
  /** Underflow of the sums, before the division by the row sum. */
  readonly fixed: number;
}

/**
 * The loss of a tile of `keys` keys whose order is known; zeros where it is not (see `anyOrderLoss`).
 *
 * @param valueFormat of V
 */
export function tileLoss(
  { values, weightFormat, underflow }: KernelArithmetic,
  keys: number,
  valueFormat: FormatName,
): TileLoss {
  switch (values.kind) {
    case 'fused': {
      const sums = Math.ceil(keys / values.productsPerSum);
      const loss = sums * fusedSumLoss(values);
      return {
        relative: chainLoss(values, keys),
        perMass: loss * smallestNormal(formats[valueFormat]),
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

/** Where the order is not known: the loss of one product, in units of Σ w|v| of the whole row. */
export function anyOrderLoss(arithmetic: SumArithmetic): number {
  return arithmetic.kind === 'any-order' ? arithmetic.perProduct : 0;
}

/** Where the order is not known: the loss of all products, in units of Σ w|v| of the whole row. */
export function anyOrderLosses(arithmetic: SumArithmetic, keys: number): number {
  return arithmetic.kind === 'any-order' ? chainLoss(arithmetic, keys) : 0;
}

/** What products and sums that underflow may amount to; that of known orders is in `tileLoss`. */
export function sumUnderflow({ values, underflow }: KernelArithmetic, keys: number): number {
  return (values.kind === 'any-order' ? keys + 1 : 1) * underflow.sums;
}

export const pvAccumulate: TechniqueBound = {
  elements: ({ arithmetic, keys }) => {
    const loss = anyOrderLosses(arithmetic.values, keys) + arithmetic.partials;
    const underflow = sumUnderflow(arithmetic, keys);
    return ({ accumulated, magnitude }) => accumulated + loss * magnitude + underflow;
  },
  lse: () => 0,
};
