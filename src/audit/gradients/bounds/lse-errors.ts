import type { AttentionReference } from '../../../../oracles/index.js';
import { decodeTensor } from '../../../formats/index.js';
import type { Problem } from '../../../problem/index.js';
import type { KernelBound, RowBound } from '../../bounds/index.js';
import { premisesByFormat, workingFormat } from '../../premises/premises.js';
import type { GradientPremises } from './gradient-premises.js';
import type { StoredForward } from './group-bounds.js';
import type { PairArithmetic } from './pair-arithmetic.js';
import type { RowSums } from './pairs/row-sums.js';
import type { RowErrors } from './pairs/weighed-pairs.js';

/** Data that the errors of rows follow from. */
export interface BoundedRows {
  readonly problem: Problem;
  readonly reference: AttentionReference;
  readonly premises: GradientPremises;
  readonly given: StoredForward;
}

/** `lse-input`: the errors that all P of a row have in common. Theorem 4 of docs/theory/bounds-backward.md. */
export interface LseErrors {
  /** Whether there is a stored LSE that says something of the row sum. */
  readonly isStored: boolean;
  /** The errors from norms, before the keys are walked over. */
  readonly ofNorms: (
    row: number,
  ) => Pick<
    RowErrors,
    'weightShift' | 'weight' | 'typicalWeight' | 'commonWeight' | 'weightVariance'
  >;
  /** The errors from those of the weights that the walk has met. */
  readonly refine: (
    row: number,
    known: RowErrors,
    sums: RowSums,
  ) => Pick<RowErrors, 'weight' | 'typicalWeight' | 'commonWeight' | 'weightVariance'>;
}

/** x, with ∞ for NaN: nothing is known of either. */
export function orInfinite(x: number): number {
  return Number.isNaN(x) ? Infinity : x;
}

/**
 * The largest error of `lg2.approx.f32` is 2^-22, which is 0.35 of the 2^-21 that premises admit for a natural logarithm: the most that
 * logarithms of all rows may err alike.
 */
const hardwareLogarithm = 0.35;

/** @param forward the bound of the forward pass, whose LSE it is where none is stored */
export function createLseErrors(
  { problem, reference, premises, given }: BoundedRows,
  forward: KernelBound,
  { elementwise, elementwiseVariance }: PairArithmetic,
): LseErrors {
  const { lse } = reference.quantities;
  const isLseOfAll = problem.sink === undefined || problem.sink.inLse;
  const storedLse = given.lse !== null && isLseOfAll ? decodeTensor(given.lse) : null;
  const isUsed = premises.delta === 'stored-output';
  const { logarithm } = premisesByFormat[workingFormat(problem.q.format, premises.output)];

  /**
   * The systematic part of the LSE's bound: the exponentials' errors average out over the keys, and those of the dot products and
   * of the row sum's additions walk at random.
   */
  function typicalLse({ lse, weight, typicalWeight, keys, addition }: RowBound): number {
    const ofAdditions = (keys - Math.sqrt(keys)) * addition;
    return Math.max(0, lse - weight + typicalWeight - premises.exponential - ofAdditions);
  }

  /**
   * The most by which all P of a row may be off together where the LSE is off by `error`, and its own product with log2 e is
   * rounded.
   */
  function ofLse(error: number, row: number): number {
    // This product rounds once for all pairs of the row.
    const ofProduct = 2 * elementwise * Math.abs(reference.denominator[row]);
    return orInfinite(Math.expm1(Math.min(error + ofProduct, 700)));
  }

  /** The errors that all P of a row share, from the weights' own errors in place of those of norms. */
  function refineWeight(row: number, begun: RowErrors, sums: RowSums) {
    const { weight, typicalWeight } = begun;
    // A sink's weight has an error of its own.
    if (isLseKnown(row) || problem.sink !== undefined)
      return { weight, typicalWeight, commonWeight: 0, weightVariance: 0 };
    const bound = forward.row(row);
    const { weightErrors } = sums;
    const ofPairs = weightErrors < 0.5 ? weightErrors / (1 - weightErrors) : Infinity;
    const others = orInfinite(bound.lse - bound.weight);
    const shift = ofStoredLse(row);
    const spread = lseSpread(row, sums, bound);
    // Errors that may be as large as this are not random.
    if (!(spread.typical + Math.abs(sums.commonWeights) + 8 * Math.sqrt(spread.variance) < 0.5))
      return {
        weight: Math.min(weight, Math.max(shift, ofLse(others + ofPairs, row))),
        typicalWeight,
        commonWeight: 0,
        weightVariance: 0,
      };
    return {
      weight: Math.min(weight, Math.max(shift, ofLse(others + ofPairs, row))),
      typicalWeight: Math.min(
        typicalWeight,
        orInfinite(Math.abs(shiftOf(row))) + Math.expm1(spread.typical),
      ),
      commonWeight: sums.commonWeights,
      weightVariance: spread.variance,
    };
  }

  /**
   * The part of the error of the LSE, with its product with log2 e, that does not average out over rows, and the variance of the rest: errors
   * of the weights, additions to the row sum, the logarithm, operations on the maximum, on the LSE and on that product.
   */
  function lseSpread(row: number, sums: RowSums, { addition }: RowBound) {
    const maximum = Math.abs(reference.maximum[row]);
    const size = Math.abs(reference.denominator[row]);
    return {
      typical:
        sums.typicalWeights +
        sums.alikeAdditions * addition +
        hardwareLogarithm * logarithm +
        // The scale times log2 e is rounded once, and log2 e and ln 2 are within 2^-26.
        (elementwise / 2) * maximum +
        (elementwise / 4) * size +
        lse.radius[row],
      variance:
        sums.weightVariance +
        sums.squaredAdditions * addition * addition +
        (logarithm * logarithm) / 3 +
        elementwiseVariance * (2 * maximum * maximum + 3 * size * size),
    };
  }

  /** The relative shift of P by the stored LSE; 0 where there is none. */
  function shiftOf(row: number): number {
    if (storedLse === null) return 0;
    return orInfinite(Math.expm1(Math.min(lse.values[row] - storedLse[row], 700)));
  }

  function isLseKnown(row: number): boolean {
    return storedLse !== null && isUsed && shiftOf(row) < Infinity;
  }

  /** The largest error of P from a stored LSE that may be used or not. */
  function ofStoredLse(row: number): number {
    const shift = shiftOf(row);
    if (shift === Infinity) return Infinity;
    return Math.abs(shift) + 4 * elementwise * Math.abs(reference.denominator[row]);
  }

  return {
    isStored: storedLse !== null,
    ofNorms: (row) => {
      const bound = forward.row(row);
      const isKnown = isLseKnown(row);
      const ofKnown = ofLse(2 * lse.radius[row], row);
      const ofAny = (error: number) => Math.max(ofLse(error, row), ofStoredLse(row));
      return {
        weightShift: isKnown ? shiftOf(row) : 0,
        weight: isKnown ? ofKnown : ofAny(bound.lse),
        typicalWeight: isKnown ? ofKnown : ofAny(typicalLse(bound)),
        commonWeight: 0,
        weightVariance: 0,
      };
    },
    refine: refineWeight,
  };
}
