import type { RowTerms, TechniqueBound, WeightError } from './technique-bound.js';
import type { SumArithmetic } from './kernel-arithmetic.js';
import { chainLoss, fusedSumLoss, roundoff32 } from './sum-error.js';

/**
 * How far the score of a query and a key may be off: perPartial·Σ |partial sums| +
 * perUnit·Σ_t q_t·k_t, with t over the steps of the chain and units q_t, k_t of both operands that
 * `scoreUnits` gives. Raw score units. Theorem 2 of docs/bounds.md.
 */
export interface ScoreError {
  /** Dimensions per partial sum; 0 where partial sums do not matter. */
  readonly step: number;
  readonly perPartial: number;
  readonly perUnit: number;
  /** Units per row. */
  readonly units: number;
}

/** The error of scores over `dim` dimensions. */
export function scoreError(arithmetic: SumArithmetic, dim: number): ScoreError {
  // Partial sums are off themselves, by at most what the whole chain can lose.
  const own = 1 / (1 - Math.min(chainLoss(arithmetic, dim), 0.5));
  switch (arithmetic.kind) {
    case 'fused': {
      const { productsPerSum, alignedFractionBits } = arithmetic;
      return {
        step: productsPerSum,
        perPartial: fusedSumLoss(arithmetic) * own,
        perUnit: (productsPerSum + 1) * 2 ** -alignedFractionBits * own,
        units: Math.ceil(dim / productsPerSum),
      };
    }
    case 'sequential':
      return { step: 1, perPartial: roundoff32 * own, perUnit: roundoff32 * own, units: dim };
    case 'any-order':
      return {
        step: 0,
        perPartial: 0,
        perUnit: chainLoss(arithmetic, dim) * (1 + arithmetic.ofOperands) + arithmetic.ofOperands,
        units: 1,
      };
  }
}

/**
 * What the errors of products are relative to, [rows × units]: the largest magnitude among the
 * dimensions of a step, or the norm of all.
 *
 * @param smallestNormal of the format: a subnormal's exponent counts as its
 */
export function scoreUnits(
  { step, units }: ScoreError,
  values: Float64Array,
  rows: number,
  dim: number,
  smallestNormal: number,
): Float64Array {
  const result = new Float64Array(rows * units);
  for (let row = 0; row < rows; row++)
    for (let t = 0; t < dim; t++) {
      const x = Math.abs(values[row * dim + t]);
      if (x === 0) continue;
      const size = Math.max(x, smallestNormal);
      const at = row * units + (step === 0 ? 0 : Math.floor(t / step));
      result[at] = step === 0 ? Math.hypot(result[at], size) : Math.max(result[at], size);
    }
  return result;
}

/**
 * How much smaller a typical error of a score is than the largest: √dim roundings instead of dim, unless
 * it is operands that are rounded.
 */
export function typicalScoreShare(arithmetic: SumArithmetic, dim: number): number {
  return arithmetic.kind === 'any-order' && arithmetic.ofOperands === 0
    ? 1 / Math.sqrt(Math.max(dim, 1))
    : 1;
}

/** The errors of the scores as relative errors of the weights. */
export function scoreWeightError({ errors }: RowTerms): WeightError {
  return { mean: errors.scores, rootMeanSquare: Math.sqrt(errors.scoresSquared) };
}

export const qkAccumulate: TechniqueBound = {
  elements: (row) => {
    const { rootMeanSquare } = scoreWeightError(row);
    return ({ scatter }) => rootMeanSquare * scatter;
  },
  lse: (row) => scoreWeightError(row).mean,
};
