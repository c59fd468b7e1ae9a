import { type KernelArithmetic, roundoff32, techniques } from '../../../../kernels/index.js';
import type { AttentionReference } from '../../../../oracles/index.js';
import { smallestNormalOf } from '../../../formats/index.js';
import type { Problem } from '../../../problem/index.js';
import { normaliseBound, outputRounding } from '../finish.js';
import { appliedRounding, roundedRowSum } from '../weights.js';
import {
  chainLoss,
  coarseFactors,
  rescaleFactorError,
  rowSumOverflows,
  sumUnderflow,
  tileLoss,
  valueTilesLoss,
} from '../sums.js';
import { commonExponentError, largestExponentError, typicalScoreShare } from '../scores.js';
import { RowErrors } from '../technique-bound.js';
import type { RowPlan } from '../row-plan.js';
import type { Bounds } from '../rows-bound.js';
import { createMovedOutput } from './moved-output.js';
import { moveWeights } from './moved-weights.js';
import { createUncertainScores, ofKeysAlone, up, type CoarseRow } from './uncertain-scores.js';

/**
 * Makes a function that bounds rows whose scores a kernel may have wrong by so much that the errors of the
 * weights are no small part of them: scores in the ten thousands. Theorem 9 of docs/theory/bounds.md: the weights
 * move by factors e^±δ, which never takes O out of the range of the values that contend for it; all other
 * errors of a kernel are relative to the moved weights. Finite wherever scores are.
 */
export function createCoarseRow(
  problem: Problem,
  reference: AttentionReference,
  arithmetic: KernelArithmetic,
  out: Bounds,
  lse: Bounds,
) {
  const { out: exactOut, lse: exactLse } = reference.quantities;
  const { qkDim, vDim } = reference.shape;
  const uncertainScores = createUncertainScores(problem, reference, arithmetic);
  const moveOutput = createMovedOutput(problem, reference);
  const { exponent, exponential, maximum, values, finish, underflow, outputFormat } = arithmetic;
  const { dropout } = arithmetic;
  const typicalShare = typicalScoreShare(arithmetic.scores, qkDim);
  const rounding = appliedRounding(arithmetic);
  const online = maximum.kind === 'online' ? maximum : null;
  const lag = online === null ? 0 : Math.min(online.threshold, 128);
  const usesPolynomial = exponential.polynomialColumns.includes(true);

  /** Sums of products with V, relative to Σ ŵ|v|; and the row sum, relative to itself. */
  function sumErrors(keys: number) {
    const blocks = online === null ? 0 : Math.ceil(keys / online.blockKeys);
    const additions = arithmetic.rowSumAdditions > 0 ? blocks * arithmetic.rowSumAdditions : keys;
    const rowSum = additions * arithmetic.rowSumAddition;
    return {
      products:
        (values.kind === 'any-order' ? 1 : 2) * chainLoss(values, keys) +
        arithmetic.partials +
        valueTilesLoss(arithmetic.valueTiles),
      rowSum,
      // Products of sums with factors, of O and of the row sum; and the factors themselves.
      rescaled: blocks * roundoff32,
      factors:
        online === null ? coarseFactors(arithmetic, keys) : blocks * rescaleFactorError(0, 0),
    };
  }

  /**
   * The most that a number beside the weights before the division is, in units of the row sum as the kernel has it: that
   * has the largest weight, which its exponent's own errors may take below 2^offset, and all others with it.
   */
  function leastSumGain({ largestMaximum }: RowPlan, local: number): number {
    if (online === null) return 1;
    const maximum = largestMaximum[local];
    const below =
      commonExponentError(exponent, maximum, online.offset) +
      largestExponentError(exponent, maximum);
    return Math.max(1, 2 ** (below - online.offset));
  }

  return function boundCoarseRow(coarse: CoarseRow): void {
    const { local, row, visible, plan, columnLargest, sunk } = coarse;
    const keys = visible.length;
    const scores = uncertainScores(coarse);
    const exact = exactLse.values[row];
    // The LSE may be that of the keys alone, O has the sink.
    const ofLse = sunk === null || sunk.isInLse ? null : ofKeysAlone(scores, keys);
    const moved = (dots: number, exponents: number) => {
      const shares = { dots, exponents };
      const weights = moveWeights(scores, reference.denominator[row], shares);
      const ofKeys = ofLse === null ? weights : moveWeights(ofLse, exact, shares);
      return { ...moveOutput(coarse, weights), ofLse: ofKeys.ofLse };
    };
    const worst = moved(1, 1);
    const usual = typicalShare === 1 ? worst : moved(typicalShare, 1);
    const ofDots = moved(1, 0);
    const ofExponents = moved(0, 1);
    const sums = sumErrors(scores.scores.length);
    const ofHardware = exponential.hardware;
    const ofPolynomial = usesPolynomial ? Math.max(0, exponential.polynomial - ofHardware) : 0;
    const gain = Math.max(leastSumGain(plan, local), ...plan.blocks.map(({ gain }) => gain[local]));
    const lost = keys * underflow.weights * gain;
    const ofRounded = roundedRowSum({ arithmetic, keys, gain });
    const wrong =
      ofHardware + ofPolynomial + sums.rowSum + sums.rescaled + sums.factors + ofRounded + 2 * lost;
    const overflows =
      plan.overflows[local] !== 0 ||
      rowSumOverflows(arithmetic, keys, plan.reach[local]) ||
      !(wrong < 1 / 2);
    const inflation = overflows ? Infinity : up / (1 - wrong);
    const largestValue = columnLargest.reduce(
      (most, x) => Math.max(most, x),
      smallestNormalOf(problem.v),
    );
    const loss = tileLoss(arithmetic, keys, smallestNormalOf(problem.v));
    // Saturation takes from a weight the excess over the largest number; else the bound is infinite.
    const ofRounding = Math.max(
      rounding.relative,
      1 - rounding.maxFinite * 2 ** -plan.reach[local] * (1 - 2 ** -30),
    );
    for (let c = 0; c < vDim; c++) {
      const at = local * vDim + c;
      const size = worst.magnitude[c];
      const overflowsSum =
        columnLargest[c] * keys * 2 ** plan.reach[local] >= arithmetic.largestSum;
      const times = (x: number) => (overflowsSum || overflows ? Infinity : x * inflation);
      const parts = out.techniques;
      parts['qk-accumulate'][at] = times(ofDots.output[c]);
      parts['scale-subtract'][at] = times(ofExponents.output[c]);
      parts['exp2-hardware'][at] = times(2 * ofHardware * size + 2 * lost * largestValue);
      parts['exp2-polynomial'][at] = times(2 * ofPolynomial * size);
      parts['p-round'][at] = times(
        (ofRounding + ofRounded) * size + keys * rounding.least * gain * largestValue,
      );
      parts['rescale'][at] = times(2 * (sums.rescaled + sums.factors) * size);
      parts['pv-accumulate'][at] = times(
        sums.products * size +
          loss.perMass +
          loss.perValue * gain * largestValue +
          loss.fixed * gain +
          sumUnderflow(arithmetic, keys),
      );
      parts['row-sum'][at] = times(sums.rowSum * size);
      parts['normalise'][at] = times(
        (finish.normalise + (dropout?.factor ?? 0)) * size + underflow.sums,
      );
      // The effect of all errors of the scores together: no sum of them leaves the range of V.
      let inner = times(worst.output[c]);
      for (const name of laterTechniques) inner += parts[name][at];
      const value = exactOut.values[row * vDim + c];
      const half =
        inner === Infinity
          ? Infinity
          : outputRounding(outputFormat, value, inner, arithmetic.outputRounding);
      parts['output-round'][at] = half;
      const radius = exactOut.radius[row * vDim + c];
      out.total[at] = inner + half + radius;
      const rare = inner === Infinity ? 0 : times(worst.output[c] - usual.output[c]);
      out.systematic[at] = out.total[at] - rare;
      out.known[at] = out.deviation[at] = 0;
    }
    boundLse();

    function boundLse(): void {
      const errors = new RowErrors();
      const terms = {
        arithmetic,
        errors,
        keys,
        lost,
        gain,
        lse: exact,
        largestMaximum: plan.largestMaximum[local],
        finalMaximum: plan.finalMaximum[local],
        logarithm: plan.logarithm[local] + (online === null ? 0 : 2 * lag),
      };
      const parts = lse.techniques;
      const whole = (x: number) => (overflows ? Infinity : x * inflation);
      parts['qk-accumulate'][local] = whole(ofDots.ofLse);
      parts['scale-subtract'][local] = whole(ofExponents.ofLse);
      parts['exp2-hardware'][local] = whole(ofHardware + lost);
      parts['exp2-polynomial'][local] = whole(ofPolynomial);
      parts['p-round'][local] = whole(ofRounded);
      parts['rescale'][local] = whole(sums.rescaled + sums.factors);
      parts['pv-accumulate'][local] = whole(0);
      parts['row-sum'][local] = whole(sums.rowSum);
      parts['normalise'][local] = whole(normaliseBound.lse(terms));
      parts['output-round'][local] = whole(0);
      let sum = whole(worst.ofLse);
      for (const name of laterTechniques) sum += parts[name][local];
      lse.total[local] = sum + exactLse.radius[row];
      lse.systematic[local] = lse.total[local];
      lse.known[local] = lse.deviation[local] = 0;
    }
  };
}

/** The techniques that act on weights as the scores make them, and before the output is rounded. */
const laterTechniques = techniques.filter(
  (name) => !['qk-accumulate', 'scale-subtract', 'output-round'].includes(name),
);
