import type { KernelArithmetic } from '../../../../kernels/index.js';
import { roundoff32 } from '../../../../kernels/index.js';
import type { AttentionReference } from '../../../../oracles/index.js';
import { scoreLaw, scoreOf, type Problem } from '../../../problem/index.js';
import { createAddends } from '../addend.js';
import { queryNorm, type HeadOperands } from '../head-operands.js';
import { euclideanNorm } from '../key-extents.js';
import type { RowPlan } from '../row-plan.js';
import type { SunkRow } from '../row-units.js';
import { commonExponentError, scoreError } from '../scores.js';

/** A factor that covers, many times over, what fp64 leaves uncertain in sums of positive numbers, and second orders. */
export const up = 1 + 2 ** -6;

/** One row whose scores may be off by too much for the first order. */
export interface CoarseRow {
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
  /** The row's sink; null without one. */
  readonly sunk: SunkRow | null;
}

/** Exponents of a row's visible keys, and of the sink behind them, in nats, and how far each may be off. */
export interface UncertainScores {
  readonly scores: Float64Array;
  /** The part from the dot product, and the part from turning it into an exponent. */
  readonly ofDots: Float64Array;
  readonly ofExponents: Float64Array;
  /** The part from fp64 in this computation, for the kernel's exponent and for the exact one. */
  readonly own: Float64Array;
  /** The part of the exponents' errors that all keys share: O does not see it. */
  readonly common: number;
}

/** Makes a function that tells the exponents of a coarse row, and how far a kernel may have each wrong. */
export function createUncertainScores(
  problem: Problem,
  { shape }: Pick<AttentionReference, 'shape'>,
  arithmetic: KernelArithmetic,
): (coarse: CoarseRow) => UncertainScores {
  const { qkDim } = shape;
  const { scale } = problem;
  const law = { ...scoreLaw(problem, shape), addend: null };
  const addends = createAddends(problem, shape);
  const [addendOfKey, sizeOfKey] = [new Float64Array(1), new Float64Array(1)];
  const { exponent, maximum, finish } = arithmetic;
  const { ofAddend = 0 } = exponent;
  const ofScore = exponent.ofScore + exponent.ofSoftcap;
  const dots = scoreError(arithmetic.scores, qkDim);
  const online = maximum.kind === 'online' ? maximum : null;
  const lag = online === null ? 0 : Math.min(online.threshold, 128);

  /** q·k in fp64, and the largest error of a kernel's before the scale. */
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

  return function uncertainScores(coarse: CoarseRow): UncertainScores {
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
  };
}

/** The first `keys` of the scores, without those behind them. */
export function ofKeysAlone(scores: UncertainScores, keys: number): UncertainScores {
  return {
    scores: scores.scores.subarray(0, keys),
    ofDots: scores.ofDots.subarray(0, keys),
    ofExponents: scores.ofExponents.subarray(0, keys),
    own: scores.own.subarray(0, keys),
    common: scores.common,
  };
}
