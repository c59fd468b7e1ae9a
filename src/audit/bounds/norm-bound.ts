import type { AttentionReference } from '../../../oracles/index.js';
import {
  decodeTensor,
  formats,
  smallestSubnormal,
  unitRoundoff,
  type FormatName,
  type NumberFormat,
} from '../../formats/index.js';
import {
  countKeys,
  problemMask,
  rowPlaces,
  type KeyRange,
  type Mask,
  type Problem,
  type RowPlace,
} from '../../problem/index.js';
import type { WorkingMemories } from '../../reuse.js';
import { createAddends, type Addends } from './addend.js';
import { createKeyExtents, euclideanNorm, type KeyExtents } from './key-extents.js';
import { tileRows } from './memory.js';
import { createSharedMaximum } from './row-units.js';
import { valueTilesLoss } from './sums.js';
import { anyDropout, factorsError, type Premises } from '../premises/premises.js';
import { problemPremises } from '../premises/resolve-premises.js';
import type { DropoutArithmetic } from '../../../kernels/index.js';

/** Options of the bounds of rows. */
interface RowBoundOptions {
  /** Which keys each query sees: that of the reference. */
  readonly mask?: Mask;
  /** Memories that remember the magnitudes of keys and values for other queries. */
  readonly memories?: WorkingMemories | undefined;
}

/** The worst-case bound of one row, before it is spread over the columns. */
export interface RowBound {
  /** Relative to Σ w|v − O|: errors of the weights that numerator and denominator share. */
  readonly weight: number;
  /** The largest absolute effect of `weight`: O stays within the range of V. */
  readonly range: number;
  /** Relative to Σ w|v|: the rounding of P, which the denominator does not see. */
  readonly weightRounding: number;
  /** Relative to Σ w|v|: the accumulation of P·V. */
  readonly accumulation: number;
  /** Relative to |O|: the row sum, the rescales, the reciprocal and the product with it. */
  readonly normalisation: number;
  /** Absolute: underflow of weights, of their products with V and of the sums. */
  readonly floor: number;
  /** The absolute error of the LSE. */
  readonly lse: number;
  /** `weight` when the d roundings of the dot product add up like a random walk. */
  readonly typicalWeight: number;
  /** Relative error of one addition into a sum over keys. */
  readonly addition: number;
  /** Relative error of a rounding of a sum P·V that tiles of keys have of their own; 0 where they have none. */
  readonly tileRounding: number;
  /** Keys that the row sees. */
  readonly keys: number;
  /** Whether weights may be off by so much that no statistic of them says anything. */
  readonly isCoarse: boolean;
  /** Declared errors beyond those of any kernel, which statistics take at their worst. */
  readonly declared: DeclaredErrors;
}

/** Errors that follow from a kernel's declarations, and dropout's factor, which is one for all; else zeros. */
interface DeclaredErrors {
  /** The part relative to Σ w|v − O|. */
  readonly ofWeights: number;
  /** The part of it that follows from scores that are written in a short format. */
  readonly ofScores: number;
  /** The part relative to Σ w|v|. */
  readonly ofMagnitude: number;
  /** The part relative to |O|. */
  readonly ofValue: number;
  /** The absolute part. */
  readonly floor: number;
  /** The part in half ulps of the output. */
  readonly halves: number;
}

/** Exponents beyond this are as good as infinite: e^700 is near the end of fp64. */
const largestExponent = 700;

/** The product of magnitudes: 0 where one is, whatever the others, and whatever is between. */
function largestProduct(scale: number, a: number, b: number): number {
  return scale === 0 || a === 0 || b === 0 ? 0 : scale * Math.min(a, b) * Math.max(a, b);
}

/**
 * The size of a sink that exponents' errors are relative to: its score, times its weight where that is small; where it is
 * the largest, its distance from the maximum is added, since all others may be relative to it.
 */
function sinkSize(sink: number, maximum: number): number {
  if (sink === -Infinity) return 0;
  const above = maximum === -Infinity ? 0 : sink - maximum;
  return above > 0 ? Math.abs(sink) + above : Math.abs(sink) * Math.exp(above);
}

/** Rows whose bounds are kept: more than the tests of an audit are at work on at once. */
const recentRows = 256;

/**
 * A bound on the error of any correct kernel (see `premisesByFormat`, unless given) on one problem, row by
 * row, from the norms of Q, K and V alone: quick, and for every row that has finite scores, where the bounds
 * of `forEachRowsBound` look at each pair of a query and a key and tell techniques apart.
 *
 * With A = |scale|·‖q‖·max‖k‖ ≥ |score| over the keys that the row sees, B the largest that is added to a score of one
 * that may have weight, d the head dimension, n the row's visible keys, a the accumulation's and r an elementwise
 * operation's relative error, e the exponential's:
 * each weight w is off by at most ε = d·a·A (dot product) + 4·r·(A + B) (scale, addition and subtraction) + e in both
 * numerator and denominator, which moves O by at most ε·Σ w|v − O|; rounding P moves it by u·Σ w|v|,
 * the accumulation of P·V by n·a·Σ w|v|, the row sum by n·a·|O|, and the rescales, the reciprocal and
 * the product with it by 4·r·|O|. Every product with V and the two of the normalisation may underflow.
 * Terms of second order are covered by the factor 1 + 2^-6.
 */
export class KernelBound {
  readonly #problem: Problem;
  readonly #mask: Mask;
  readonly #reference: AttentionReference;
  readonly #weightFormat: NumberFormat;
  readonly #premises: Premises;
  readonly #placeOf: (head: number, query: number) => RowPlace;
  readonly #sharedMaximum: (head: number, sequence: number) => number | null;
  readonly #extentsOf: (kvHead: number) => KeyExtents;
  readonly #extents = new Map<number, KeyExtents>();
  readonly #addends: Addends | null;
  readonly #sinks: Float64Array | null;
  readonly #dropout: DropoutArithmetic & { readonly share: number };
  /** The largest addend by row, once it is known. */
  readonly #largestAddends: Float64Array;
  readonly #recent: ({ readonly row: number; readonly bound: RowBound } | undefined)[] = [];

  /**
   * @throws RequestError for premises that a sample of rows cannot be judged by
   */
  constructor(
    problem: Problem,
    reference: AttentionReference,
    outputFormat: FormatName,
    premises: Premises = problemPremises(problem, outputFormat),
    { mask = problemMask(problem, reference.shape), memories }: RowBoundOptions = {},
  ) {
    const { shape } = reference;
    const { maximum, factors } = premises;
    this.#problem = problem;
    this.#mask = mask;
    this.#reference = reference;
    this.#extentsOf = createKeyExtents(problem, shape, memories);
    this.#addends = createAddends(problem, shape);
    this.#sinks = problem.sink === undefined ? null : decodeTensor(problem.sink.logits);
    this.#dropout =
      problem.dropout === undefined
        ? { roundings: 1, factor: 0, share: 1 }
        : {
            ...anyDropout(problem.dropout.probability, premises),
            share: 1 - problem.dropout.probability,
          };
    this.#largestAddends = new Float64Array(this.#addends === null ? 0 : reference.maximum.length);
    this.#largestAddends.fill(NaN);
    this.#weightFormat = formats[premises.weightFormat];
    this.#premises = premises;
    this.#placeOf = rowPlaces(problem, shape);
    const rule = { kind: 'unknown', shared: maximum, factors } as const;
    this.#sharedMaximum = createSharedMaximum(problem, reference, rule);
  }

  /** Magnitudes of the keys and values that query row `row` of all [batch, heads, queries] reads. */
  #extentsOfRow(row: number): KeyExtents {
    const { heads, kvHeads, groupSize, queries } = this.#reference.shape;
    const head = Math.floor(row / queries);
    const kv = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
    const known = this.#extents.get(kv) ?? this.#extentsOf(kv);
    this.#extents.set(kv, known);
    return known;
  }

  /** ‖q‖; 0 for a row with infinities or NaNs: it has no finite score, and so no errors. */
  #queryNorm(row: number): number {
    const { qkDim } = this.#reference.shape;
    const query = decodeTensor(this.#problem.q, row * qkDim, (row + 1) * qkDim);
    return query.every(Number.isFinite) ? euclideanNorm(query, 0, qkDim) : 0;
  }

  /** The number that scores are relative to where that is not the row's own maximum; null where it is. */
  #origin(row: number): number | null {
    const { maximum } = this.#premises;
    if (maximum === 'row' || !Number.isFinite(this.#reference.quantities.lse.values[row]))
      return null;
    const { queries } = this.#reference.shape;
    const head = Math.floor(row / queries);
    const shared = this.#sharedMaximum(head, this.#placeOf(head, row % queries).sequence);
    return shared === null ? null : shared * Math.LN2;
  }

  /**
   * The largest size of an addend of the score of a key that the row sees and that may have weight: see `Addends`.
   * @param score an upper bound of a score before the addition
   */
  #largestAddend(row: number, ranges: readonly KeyRange[], score: number): number {
    if (this.#addends === null) return 0;
    const known = this.#largestAddends[row];
    if (!Number.isNaN(known)) return known;
    const { maximum, shape } = this.#reference;
    const { elementwise, scoreRounding, underflow } = this.#premises;
    const head = Math.floor(row / shape.queries);
    const query = row % shape.queries;
    const perSize = 4 * elementwise + 5 * scoreRounding;
    const least = Math.min(maximum[row], 0) + Math.log(underflow) - 2 - 2 * score * (1 + perSize);
    let largest = 0;
    for (const { begin, end } of ranges)
      for (let first = begin; first < end; first += tileRows) {
        const count = Math.min(tileRows, end - first);
        const added = new Float64Array(count);
        const sizes = new Float64Array(count);
        this.#addends.addend(head, query, first, added);
        this.#addends.size(head, query, first, sizes);
        for (let j = 0; j < count; j++)
          if (!(added[j] + perSize * sizes[j] <= least)) largest = Math.max(largest, sizes[j]);
      }
    this.#largestAddends[row] = largest;
    return largest;
  }

  /** The bound of row `row`, counted over [batch, heads, queries]; the last ones are kept. */
  row(row: number): RowBound {
    const place = row % recentRows;
    const kept = this.#recent[place];
    if (kept?.row === row) return kept.bound;
    const bound = this.#boundOfRow(row);
    this.#recent[place] = { row, bound };
    return bound;
  }

  #boundOfRow(row: number): RowBound {
    const {
      shape,
      maximum,
      denominator,
      quantities: {
        lse: { values: lse, radius: lseRadius },
      },
    } = this.#reference;
    const { scale, softcap } = this.#problem;
    const { accumulation, elementwise, exponential, logarithm, tanh } = this.#premises;
    const { scoreAccumulation, operands, scoreRounding, scoreFloor, factors } = this.#premises;
    const { smallestOperand, sumUnderflow, underflow, usualAccumulation } = this.#premises;
    const head = Math.floor(row / shape.queries);
    const ranges = this.#mask.ranges(head, row % shape.queries);
    const n = countKeys(ranges);
    const extents = this.#extentsOfRow(row);
    const largestValue = extents.value(ranges) / this.#dropout.share;
    const ofSink = this.#sinks?.[head % shape.heads] ?? -Infinity;
    const sink = sinkSize(ofSink, maximum[row]);
    const additions = n + (ofSink > -Infinity ? 1 : 0);
    const queryNorm = this.#queryNorm(row);
    const keyNorm = extents.keyNorm(ranges);
    const score = largestProduct(Math.abs(scale), queryNorm, keyNorm);
    const least = Math.sqrt(shape.qkDim) * smallestOperand;
    const capped = softcap === null ? score : Math.min(score, softcap);
    const added = this.#largestAddend(row, ranges, capped);
    const origin = this.#origin(row);
    const away = origin === null ? 0 : Math.abs(origin);
    const dots = Math.expm1(shape.qkDim * scoreAccumulation);
    const usualDots = Math.expm1(shape.qkDim * usualAccumulation);
    const usualScoreError =
      usualDots * score +
      4 * elementwise * (score + added + sink) +
      (softcap === null ? 0 : (tanh + 4 * elementwise) * capped);
    const writtenScoreError = (added > 0 ? 5 : 4) * scoreRounding * (score + added + sink + away);
    // Scores beyond fp64 have any error; 0 · ∞ would be none.
    const otherScoreError =
      score === Infinity
        ? Infinity
        : Math.max(0, dots - usualDots) * score +
          operands * Math.abs(scale) * (queryNorm + least) * (keyNorm + least) +
          4 * elementwise * away +
          scoreFloor;
    const declaredScoreError = score === Infinity ? Infinity : writtenScoreError + otherScoreError;
    const ofFactors = factorsError(factors, n);
    const weightError = (ofScores: number, ofFactor: number) =>
      (Math.expm1(Math.min(ofScores, largestExponent)) + exponential + ofFactor) * (1 + 2 ** -6);
    const weight = weightError(usualScoreError + declaredScoreError, ofFactors);
    const usualWeight = weightError(usualScoreError, 0);
    const unwritten = weightError(usualScoreError + otherScoreError, ofFactors);
    const typicalWeight =
      usualScoreError > largestExponent
        ? usualWeight
        : usualWeight - usualDots * score + Math.sqrt(shape.qkDim) * usualAccumulation * score;
    const sums = Math.expm1(n * accumulation);
    const usualSums = Math.expm1(n * usualAccumulation);
    const rowSums = additions * this.#premises.rowSumAddition;
    const u = unitRoundoff(this.#weightFormat);
    // The denominator in units of the largest weight, a sink's among them, or of 1 relative to a shared maximum. ∞ − ∞
    // where no score is finite: there are no weights to lose.
    const relative = Math.exp(denominator[row] - Math.max(origin ?? maximum[row], ofSink));
    const total = Number.isNaN(relative) ? 1 : origin === null ? Math.max(1, relative) : relative;
    const { rowSumRounded, weightScale, valueTiles } = this.#premises;
    const partials = this.#premises.partials + valueTilesLoss(valueTiles);
    const { roundings } = this.#dropout;
    const leastWeight = smallestSubnormal(this.#weightFormat) / 2 / weightScale;
    const lost = n * (leastWeight / Math.min(total, 1));
    const rounded = rowSumRounded ? u / (1 + u) + lost : 0;
    const floor =
      (origin === null
        ? (n * (roundings * leastWeight + 2 ** -126)) / total
        : roundings * lost + (n * 2 ** -126) / total) *
        largestValue +
      (n + 2) * sumUnderflow;
    const declared: DeclaredErrors = {
      ofWeights: weight - usualWeight,
      ofScores: weight - unwritten,
      ofMagnitude: (partials + Math.max(0, sums - usualSums)) * (1 + 2 ** -6),
      ofValue: rounded + this.#dropout.factor,
      floor: origin !== null || sumUnderflow > underflow ? floor : 0,
      halves: this.#premises.outputRounding === 'nearest' ? 0 : 2,
    };
    return {
      weight,
      typicalWeight,
      range: 2 * largestValue,
      weightRounding: roundings * (u / (1 + u)) * (1 + 2 ** -6),
      accumulation: (sums + partials) * (1 + 2 ** -6),
      normalisation: (rowSums + 4 * elementwise + rounded + this.#dropout.factor) * (1 + 2 ** -6),
      addition: usualAccumulation,
      tileRounding: valueTiles?.roundoff ?? 0,
      floor,
      lse:
        weight +
        (rowSums + rounded) * (1 + 2 ** -6) +
        logarithm +
        4 * elementwise * (capped + added + sink + away + Math.abs(lse[row])) +
        lseRadius[row],
      keys: n,
      isCoarse: typicalWeight + declared.ofWeights >= 1 / 2,
      declared,
    };
  }
}

/**
 * The bound of one element before the rounding of the output: a row's bound spread over the columns, each
 * error by the quantity that it is relative to. `deviation` is Σ w|v − O|.
 */
export function internalBound(
  row: RowBound,
  value: number,
  magnitude: number,
  deviation: number,
): number {
  return (
    Math.min(row.weight * deviation, row.range) +
    (row.weightRounding + row.accumulation) * magnitude +
    row.normalisation * Math.abs(value) +
    row.floor
  );
}
