import { alike, type RowTerms, type TechniqueBound, type WeightError } from './technique-bound.js';
import { formats, smallestNormal, smallestSubnormal, unitRoundoff } from '../../formats/index.js';
import type { KernelArithmetic } from '../../../kernels/index.js';

// The errors of weights: `exp2-hardware`, `exp2-polynomial` and `p-round`, sections 4 and 5 of
// docs/theory/bounds.md.

/** The unit's error on the weights that it computes. */
export function hardwareWeightError({ arithmetic, errors }: RowTerms): WeightError {
  return alike(arithmetic.exponential.hardware, errors.mass - errors.polynomialMass);
}

/** `exp2-hardware`: the unit, and the weights that it flushes to zero. Theorem 4. */
export const exp2HardwareBound: TechniqueBound = {
  elements: (row) => {
    const { rootMeanSquare } = hardwareWeightError(row);
    return { scatter: rootMeanSquare, underflow: 1 };
  },
  lse: (row) => hardwareWeightError(row).mean + row.lost,
};

/** The polynomial's error on the weights that it computes. */
export function polynomialWeightError({ arithmetic, errors }: RowTerms): WeightError {
  return alike(arithmetic.exponential.polynomial, errors.polynomialMass);
}

/** Whether the kernel computes any weight by the polynomial, which is wrong between 2^-127 and 2^-126. */
function isUsed({ arithmetic }: RowTerms): boolean {
  return arithmetic.exponential.polynomialColumns.includes(true);
}

/** `exp2-polynomial`: the columns that the polynomial computes. Theorem 4. */
export const exp2PolynomialBound: TechniqueBound = {
  elements: (row) => {
    const { rootMeanSquare } = polynomialWeightError(row);
    return { scatter: rootMeanSquare, ...(isUsed(row) ? { underflow: 1 } : {}) };
  },
  lse: (row) => polynomialWeightError(row).mean + (isUsed(row) ? row.lost : 0),
};

/** The effect of rounding P to a format, in the terms of the inner loop. */
export interface WeightRounding {
  readonly smallestNormal: number;
  /** ulp of 1. */
  readonly ulpOfOne: number;
  readonly maxFinite: number;
  /** Whether larger weights become maxFinite, as GPUs convert to fp8, and not infinite. */
  readonly saturates: boolean;
  /** Largest error relative to a normal number anywhere: u / (1 + u). */
  readonly relative: number;
  /** Largest error of a subnormal result. */
  readonly least: number;
  /** Whether it is weights themselves that are rounded, and not their products with a factor. */
  readonly isOfWeights: boolean;
}

/** A weight known to within this relative error is taken as known, one that is not may be anywhere. */
export const largestKnownError = 1 / 8;

/**
 * Rounding to nearest even in a format. Theorem 5 of docs/theory/bounds.md. FP8 saturates:
 * PTX's cvt.rn.satfinite, the only conversion to it.
 */
export function weightRounding({
  weightFormat: name,
  weightScale = 1,
  overflow,
}: KernelArithmetic): WeightRounding {
  const format = formats[name];
  const u = unitRoundoff(format);
  return {
    smallestNormal: smallestNormal(format) / weightScale,
    ulpOfOne: 2 * u,
    maxFinite: overflow === 'fault' ? Infinity : format.maxFinite / weightScale,
    saturates: name === 'e4m3' || name === 'e5m2' || name === 'e2m1',
    relative: u / (1 + u),
    least: smallestSubnormal(format) / 2 / weightScale,
    isOfWeights: true,
  };
}

/**
 * The rounding of P before its product with V: with dropout before or after the factor 1/(1 − p), or both times,
 * relative to P with the factor in either case. Theorem 12 of docs/theory/bounds.md.
 */
export function appliedRounding(arithmetic: KernelArithmetic): WeightRounding {
  const once = weightRounding(arithmetic);
  const { dropout } = arithmetic;
  if (dropout === undefined) return once;
  return {
    ...once,
    relative: (1 + once.relative) ** dropout.roundings - 1,
    least: once.least * dropout.roundings,
    isOfWeights: false,
  };
}

/** The relative error of a row sum of rounded weights; 0 where the kernel adds them before they are rounded. */
export function roundedRowSum({
  arithmetic,
  keys,
  gain,
}: Pick<RowTerms, 'arithmetic' | 'keys' | 'gain'>): number {
  if (!arithmetic.rowSumRounded) return 0;
  const { relative, least } = weightRounding(arithmetic);
  return relative + keys * least * gain;
}

/** `p-round`: Theorem 5. The LSE sees it only where the row sum adds weights that are rounded. */
export const pRoundBound: TechniqueBound = {
  elements: (row) => ({ moved: 1, size: roundedRowSum(row) }),
  lse: roundedRowSum,
};
