import type { KernelArithmetic } from '../../../../kernels/index.js';
import type { AttentionReference } from '../../../../oracles/index.js';
import {
  finishElements,
  innerNames,
  innerTechniques,
  scaled,
  type FinishedRow,
} from './finish-elements.js';
import type { BoundMemory } from '../memory.js';
import type { RowPlan } from '../row-plan.js';
import { errorsWithSink, type SunkRow } from '../row-units.js';
import type { Bounds } from '../rows-bound.js';
import { scoreWeightError, typicalScoreShare } from '../scores.js';
import { anyOrderLoss, rescaleWeightError, rowSumOverflows } from '../sums.js';
import type { RowTerms } from '../technique-bound.js';
import { hardwareWeightError, polynomialWeightError, roundedRowSum } from '../weights.js';

/** A factor that covers, many times over, what fp64 leaves uncertain in all of this. */
const up = 1 + 2 ** -12;

/**
 * Makes a function that puts the bounds of a row together: the techniques' bounds times the factor for cross
 * terms and a wrong row sum (Theorem 1 of docs/theory/bounds.md), and the rounding of the output.
 */
export function createFinishRow(
  reference: AttentionReference,
  arithmetic: KernelArithmetic,
  memory: BoundMemory,
  out: Bounds,
  lse: Bounds,
) {
  const { lse: exactLse } = reference.quantities;
  const { underflow, exponential } = arithmetic;
  const ofElements = {
    reference,
    arithmetic,
    memory,
    out,
    typicalScores: typicalScoreShare(arithmetic.scores, reference.shape.qkDim),
    anyOrder: anyOrderLoss(arithmetic.values),
  };

  /** The largest mean error of the shared weights, all techniques together. */
  function weightsError(terms: RowTerms): number {
    return (
      scoreWeightError(terms).mean +
      innerTechniques['scale-subtract'].lse(terms) +
      hardwareWeightError(terms).mean +
      polynomialWeightError(terms).mean +
      rescaleWeightError(terms).mean
    );
  }

  function finishLse({ local, row }: FinishedRow, terms: RowTerms, inflation: number): void {
    const radius = exactLse.radius[row];
    let sum = 0;
    for (const technique of innerNames) {
      const bound = scaled(innerTechniques[technique].lse(terms), inflation);
      lse.techniques[technique][local] = bound;
      sum += bound;
    }
    lse.techniques['output-round'][local] = 0;
    lse.total[local] = sum + radius;
    const { errors, lost } = terms;
    const ofExponential =
      lse.techniques['exp2-hardware'][local] + lse.techniques['exp2-polynomial'][local];
    const mean = Math.abs(exponential.polynomialMean) * errors.polynomialMass + 2 * lost;
    lse.systematic[local] =
      inflation === Infinity ? Infinity : sum - ofExponential + mean * inflation + radius;
    lse.known[local] = 0;
    lse.deviation[local] = scaled(Math.sqrt(errors.exponentialVariance / 2), inflation);
  }

  /** The largest error of the row sum, all techniques together. */
  function rowSumError(terms: RowTerms): number {
    const { errors, lost } = terms;
    return (
      weightsError(terms) + errors.rowSum + errors.rescaledSum + roundedRowSum(terms) + 2 * lost
    );
  }

  /** False, with nothing done, where the errors are too large for the first order. */
  return function finishRow(finished: FinishedRow): boolean {
    const { local, row, keys, errors, plan, sunk } = finished;
    const gain = plan.blocks.reduce((most, block) => Math.max(most, block.gain[local]), 0);
    const ofKeys: RowTerms = {
      arithmetic,
      errors,
      keys,
      largestMaximum: plan.largestMaximum[local],
      finalMaximum: plan.finalMaximum[local],
      logarithm: plan.logarithm[local],
      lse: exactLse.values[row],
      lost: keys * underflow.weights * gain,
      gain,
    };
    const terms = sunk === null ? ofKeys : withSink(ofKeys, sunk, plan, local);
    const ofLse = sunk === null || sunk.isInLse ? terms : ofKeys;
    const wrong = rowSumError(terms);
    const wrongLse = ofLse === terms ? wrong : rowSumError(ofLse);
    if (!(wrong < 1 / 2 && wrongLse < 1 / 2)) return false;
    const isBounded =
      plan.overflows[local] === 0 && !rowSumOverflows(arithmetic, keys, plan.reach[local]);
    const inflation = (error: number) =>
      isBounded ? (up * (1 + errors.largest)) / (1 - error) : Infinity;
    finishElements(ofElements, finished, terms, inflation(wrong));
    finishLse(finished, ofLse, inflation(wrongLse));
    return true;
  };

  /** A row relative to its whole row sum, of which a sink has a part. */
  function withSink(terms: RowTerms, sunk: SunkRow, plan: RowPlan, local: number): RowTerms {
    const gain = Math.max(terms.gain * sunk.share, sunk.gain);
    return {
      ...terms,
      errors: errorsWithSink(terms.errors, sunk, arithmetic, plan.origin[local]),
      lost: terms.keys * underflow.weights * gain,
      gain,
    };
  }
}
