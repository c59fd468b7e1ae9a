import { type KernelArithmetic, roundoff32, techniques } from '../../../kernels/index.js';
import type { AttentionReference } from '../../../oracles/index.js';
import { smallestNormalOf } from '../../formats/index.js';
import { keptWeights, scoreLaw, scoreOf, type Problem } from '../../problem/index.js';
import { createAddends } from './addend.js';
import { queryNorm, type HeadOperands } from './head-operands.js';
import { euclideanNorm } from './key-extents.js';
import { normaliseBound, outputRounding } from './finish.js';
import { appliedRounding, roundedRowSum } from './weights.js';
import {
  chainLoss,
  coarseFactors,
  rescaleFactorError,
  rowSumOverflows,
  sumUnderflow,
  tileLoss,
} from './sums.js';
import {
  commonExponentError,
  largestExponentError,
  scoreError,
  typicalScoreShare,
} from './scores.js';
import { RowErrors } from './technique-bound.js';
import type { RowPlan } from './row-plan.js';
import type { SunkRow } from './row-units.js';
import type { Bounds } from './rows-bound.js';

/** Weights below e^-45 of the largest, whatever their scores' errors, do not contend with it. */
const contending = 45;

/** What fp64 leaves uncertain in sums of positive numbers, many times over, and second orders. */
const up = 1 + 2 ** -6;

/** One row whose scores may be off by too much for the first order. */
interface CoarseRow {
  /** Its place in the tile of rows, among the head's queries, and among all rows. */
  readonly local: number;
  readonly query: number;
  readonly row: number;
  /** The keys that it sees, ascending. */
  readonly visible: Int32Array;
  readonly plan: RowPlan;
  readonly operands: HeadOperands;
  /** [vDim]: the largest magnitudes of the values that it sees, by column. */
  readonly columnLargest: Float64Array;
  /** What a sink does to it; null without. */
  readonly sunk: SunkRow | null;
}

/** Exponents of a row's visible keys, and of the sink behind them, in nats, and how far each may be off. */
interface UncertainScores {
  readonly scores: Float64Array;
  /** By the dot product, and by what makes an exponent of it. */
  readonly ofDots: Float64Array;
  readonly ofExponents: Float64Array;
  /** By fp64, here: as far as the kernel's exponent may be off, and the exact one as well. */
  readonly own: Float64Array;
  /** The part of the exponents' errors that all keys share: O does not see it. */
  readonly common: number;
}

/** How the weights may move, given the error of each exponent. */
interface MovedWeights {
  /** What |w − ŵ| is at most, with ŵ scaled so that the largest weight stays. */
  readonly moved: Float64Array;
  /** What Σ ŵ is at least, so scaled. */
  readonly least: number;
  /** Whether a key may have weight to speak of. */
  readonly contends: Uint8Array;
  /** At most ŵ / ŵ_largest for the keys that do not. */
  readonly rest: Float64Array;
  /** ln of Σ w e^±error, the larger magnitude: what the LSE may move. */
  readonly ofLse: number;
}

/**
 * Makes a function that bounds rows whose scores a kernel may have wrong by so much that the errors of
 * the weights are no small part of them: scores in the ten thousands. Theorem 9 of docs/bounds.md: the
 * weights move by factors e^±δ, which never takes O out of the range of the values that contend for it;
 * what else a kernel does wrong is relative to the weights so moved. Finite wherever scores are.
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
  const { scale } = problem;
  const law = { ...scoreLaw(problem, reference.shape), addend: null };
  const addends = createAddends(problem, reference.shape);
  const [addendOfKey, sizeOfKey] = [new Float64Array(1), new Float64Array(1)];
  const kept = keptWeights(problem, reference.shape);
  const isKept = new Uint8Array(1).fill(1);
  const { exponent, exponential, maximum, values, finish, underflow, outputFormat } = arithmetic;
  const { dropout } = arithmetic;
  const { ofAddend = 0 } = exponent;
  const ofScore = exponent.ofScore + exponent.ofSoftcap;
  const dots = scoreError(arithmetic.scores, qkDim);
  const typicalShare = typicalScoreShare(arithmetic.scores, qkDim);
  const rounding = appliedRounding(arithmetic);
  const online = maximum.kind === 'online' ? maximum : null;
  const lag = online === null ? 0 : Math.min(online.threshold, 128);
  const usesPolynomial = exponential.polynomialColumns.includes(true);

  /** q·k in fp64, and what a kernel may be off by before the scale. */
  function dotProduct({ operands, query }: CoarseRow, norm: number, key: number) {
    const ofQuery = operands.query.with(query);
    const ofKey = operands.key.with(key);
    const [q, k] = [ofQuery.values, ofKey.values];
    const [localQuery, localKey] = [query - ofQuery.first, key - ofKey.first];
    const a = localQuery * qkDim;
    const b = localKey * qkDim;
    const { step, units, perPartial, perUnit } = dots;
    const chunk = step === 0 ? qkDim : step;
    let dot = 0;
    let partials = 0;
    for (let first = 0; first < qkDim; first += chunk) {
      const end = Math.min(first + chunk, qkDim);
      for (let t = first; t < end; t++) dot += q[a + t] * k[b + t];
      partials += Math.abs(dot);
    }
    let products = 0;
    for (let t = 0; t < units; t++)
      products += ofQuery.units[localQuery * units + t] * ofKey.units[localKey * units + t];
    const error = (step === 0 ? 0 : perPartial * partials) + perUnit * products;
    const norms = norm * euclideanNorm(k, b, b + qkDim);
    return { dot, error, own: (qkDim + 4) * 2 ** -52 * norms };
  }

  function uncertainScores(coarse: CoarseRow): UncertainScores {
    const { visible, query, operands, plan, local, sunk } = coarse;
    const norm = queryNorm(operands, query, qkDim);
    const count = visible.length + (sunk === null ? 0 : 1);
    const scores = new Float64Array(count);
    const ofDots = new Float64Array(count);
    const ofExponents = new Float64Array(count);
    const ownErrors = new Float64Array(count);
    const sizes = new Float64Array(count);
    let largest = -Infinity;
    let largestSize = 0;
    for (let j = 0; j < visible.length; j++) {
      const { dot, error, own } = dotProduct(coarse, norm, visible[j]);
      if (addends !== null) {
        addends.addend(operands.head, query, visible[j], addendOfKey);
        addends.size(operands.head, query, visible[j], sizeOfKey);
        sizes[j] = sizeOfKey[0];
      }
      const scaled = scoreOf(law, dot, operands.head, query, visible[j]);
      const score = scaled + addendOfKey[0];
      scores[j] = score;
      ofDots[j] = Math.abs(scale) * error * up;
      ofExponents[j] = ofAddend * sizes[j] + ofScore * Math.min(Math.abs(scaled), sizes[j]);
      ownErrors[j] = 2 * (Math.abs(scale) * own + (Math.abs(score) + 2 * sizes[j]) * 2 ** -50);
      largest = Math.max(largest, score);
      largestSize = Math.max(largestSize, Math.abs(score));
    }
    if (sunk !== null) {
      const sink = sunk.exponent * Math.LN2;
      scores[visible.length] = sink;
      ofExponents[visible.length] = 2 * finish.elementwise * Math.abs(sink);
      ownErrors[visible.length] = 2 * Math.abs(sink) * 2 ** -50;
      largest = Math.max(largest, sink);
      largestSize = Math.max(largestSize, Math.abs(sink));
    }
    const offset = online?.offset ?? 0;
    const inUse = largestSize * Math.LOG2E + lag;
    const common = Math.LN2 * commonExponentError(exponent, inUse, offset) * up;
    for (let j = 0; j < count; j++) {
      const isOwn = maximum.kind !== 'unknown' || maximum.shared === 'row';
      const away = isOwn ? 0 : Math.LN2 * plan.finalMaximum[local] + Math.abs(largest);
      const distance = largest - scores[j] + (lag + Math.abs(offset)) * Math.LN2 + away;
      const ofFactors = online === null ? 0 : 2 * roundoff32 + Math.abs(arithmetic.scaleError);
      ofExponents[j] =
        (ofExponents[j] +
          (exponent.ofDistance + ofFactors) * distance +
          ofScore * (Math.abs(scores[j]) + away) +
          Math.LN2 * exponent.absolute) *
        up;
    }
    return { scores, ofDots, ofExponents, own: ownErrors, common };
  }

  /** The same without what is behind so many keys. */
  function ofKeysAlone(scores: UncertainScores, keys: number): UncertainScores {
    return {
      scores: scores.scores.subarray(0, keys),
      ofDots: scores.ofDots.subarray(0, keys),
      ofExponents: scores.ofExponents.subarray(0, keys),
      own: scores.own.subarray(0, keys),
      common: scores.common,
    };
  }

  /** @param shares of the errors that count */
  function moveWeights(
    { scores, ofDots, ofExponents, own, common }: UncertainScores,
    exact: number,
    shares: { readonly dots: number; readonly exponents: number },
  ): MovedWeights {
    const count = scores.length;
    let top = 0;
    for (let j = 1; j < count; j++) if (scores[j] > scores[top]) top = j;
    const errorOf = (j: number) =>
      shares.dots * ofDots[j] + shares.exponents * ofExponents[j] + own[j];
    // Weights of blocks with other maxima in use have another common error.
    const shared = shares.exponents * common;
    const ofTop = errorOf(top) + 2 * shared;
    const moved = new Float64Array(count);
    const rest = new Float64Array(count);
    const contends = new Uint8Array(count);
    const weightOfTop = Math.exp(scores[top] - exact);
    let least = weightOfTop * Math.exp(-own[top]);
    let upper = -Infinity;
    let lower = -Infinity;
    for (let j = 0; j < count; j++) {
      const error = errorOf(j);
      const logarithm = scores[j] - exact;
      upper = Math.max(upper, logarithm + error);
      lower = Math.max(lower, logarithm - error);
      if (j === top) {
        contends[j] = 1;
        continue;
      }
      const relative = scores[j] - scores[top] + error + ofTop;
      contends[j] = relative >= -contending ? 1 : 0;
      if (contends[j] === 0) rest[j] = Math.exp(relative);
      moved[j] = Math.exp(logarithm) * Math.expm1(error + ofTop);
      // 0 · ∞: a weight that is none, and may be any up to this.
      if (Number.isNaN(moved[j])) moved[j] = Math.exp(logarithm + error + ofTop);
      least += Math.exp(logarithm - error - ofTop);
    }
    let sumUpper = 0;
    let sumLower = 0;
    for (let j = 0; j < count; j++) {
      const logarithm = scores[j] - exact;
      sumUpper += Math.exp(logarithm + errorOf(j) - upper);
      sumLower += Math.exp(logarithm - errorOf(j) - lower);
    }
    const ofLse = Math.max(upper + Math.log(sumUpper), -lower - Math.log(sumLower)) + shared;
    return { moved, least, contends, rest, ofLse: Math.max(ofLse, 0) };
  }

  /** How far O may be moved, by column, and the largest |v| that has weight. */
  function moveOutput({ visible, row, query, operands }: CoarseRow, weights: MovedWeights) {
    const { moved, least, contends, rest } = weights;
    const first = new Float64Array(vDim);
    const reach = new Float64Array(vDim);
    const others = new Float64Array(vDim);
    const magnitude = new Float64Array(vDim);
    for (let j = 0; j < moved.length; j++) {
      if (contends[j] === 0 && rest[j] === 0) continue;
      const isSink = j === visible.length;
      const { first: firstKey, values } = operands.value.with(isSink ? visible[0] : visible[j]);
      kept?.fill(operands.head, query, isSink ? visible[0] : visible[j], isKept);
      const factor = isSink || isKept[0] === 0 ? 0 : 1 / (kept?.share ?? 1);
      let at = isSink ? 0 : (visible[j] - firstKey) * vDim;
      for (let c = 0; c < vDim; c++, at++) {
        const v = values[at] * factor;
        const distance = Math.abs(v - exactOut.values[row * vDim + c]);
        if (moved[j] > 0 && distance > 0) first[c] += moved[j] * distance;
        if (contends[j] === 1) {
          reach[c] = Math.max(reach[c], distance);
          magnitude[c] = Math.max(magnitude[c], Math.abs(v));
        } else others[c] += rest[j] * (distance + Math.abs(v));
      }
    }
    return {
      output: Float64Array.from(first, (x, c) =>
        Math.min(least > 0 ? (x / least) * up : x > 0 ? Infinity : 0, reach[c] + others[c] * up),
      ),
      magnitude: magnitude.map((x, c) => x + others[c] * up),
    };
  }

  /** Sums of products with V, relative to Σ ŵ|v|; and the row sum, relative to itself. */
  function sumErrors(keys: number) {
    const blocks = online === null ? 0 : Math.ceil(keys / online.blockKeys);
    const additions = arithmetic.rowSumAdditions > 0 ? blocks * arithmetic.rowSumAdditions : keys;
    const rowSum = additions * arithmetic.rowSumAddition;
    return {
      products:
        (values.kind === 'any-order' ? 1 : 2) * chainLoss(values, keys) + arithmetic.partials,
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
    // Saturation takes from a weight what is beyond the largest number; else the bound is infinite.
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
      // Of the scores' errors together: no sum of them leaves the range of V.
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
