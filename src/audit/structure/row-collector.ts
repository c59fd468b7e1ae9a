import {
  levels,
  type AttentionReference,
  type WeightTile,
  type WorkingMemories,
} from '../../../oracles/index.js';
import {
  formats,
  smallestNormal,
  smallestSubnormal,
  type FormatName,
} from '../../formats/index.js';
import type { KeptWeights } from '../../problem/index.js';
import type { KernelBound } from '../bounds/index.js';
import type { Premises } from '../premises/premises.js';
import type { NearlyEqual } from './error-pool.js';
import type { InstrumentMaker } from './instruments.js';
import type { PooledProjections } from './pooled-projections.js';
import { withRowMemory, type OtherFactor, type RowMemory, type RowRules } from './row-memory.js';
import { RowElements } from './row-elements.js';
import type { RowProjections } from './row-tolerance.js';
import { instrumentCount } from './structure-entries.js';
import { walkRows } from './structure-statistic.js';

/** The context in which all rows' projections are collected. */
interface ProjectionModel {
  readonly reference: AttentionReference;
  /** The kernel's output, decoded. */
  readonly out: Float64Array;
  readonly outputFormat: FormatName;
  readonly bound: KernelBound;
  readonly makeInstruments: InstrumentMaker;
  /** Groups of weights that round alike, and of outputs that do. */
  readonly weightGroups: NearlyEqual;
  readonly outputGroups: NearlyEqual;
  /** Whether sums over keys may be truncated, and so err to one side. */
  readonly sumsTruncate: boolean;
  /** The largest error of weights that is a function of their score. */
  readonly scoreError: number;
  /** Errors of an elementwise operation, of one whose result is subnormal, and of the exponential. */
  readonly premises: Pick<Premises, 'elementwise' | 'underflow' | 'exponential'>;
  /** P's format, and the relative error of rounding to it by place; null where that is as fine as fp32. */
  readonly weightFormat: FormatName;
  /** The factor of P before it is rounded. */
  readonly weightScale: number;
  readonly roundingErrors: Float64Array | null;
  /** The weights that dropout keeps; null without. */
  readonly kept: KeptWeights | null;
  /** Number of roundings of each weight on its way to V: Theorem 12 of docs/theory/bounds.md. */
  readonly roundings: number;
  /** The scores of sinks by head, natural units; null without. */
  readonly sinks: Float64Array | null;
  /** Whether the LSE has the sink. */
  readonly isSinkInLse: boolean;
}

/** The largest relative error of weights that are taken to err at random. */
const largestRandomError = 2 ** -4;

/**
 * The Σ w² beyond which a row is that of one key: its outputs are that key's values times one factor near 1,
 * so that the rounding of each follows from its significand and the factor, as an instrument's weights may.
 * Their worst case counts.
 */
const dominated = 1 - 2 ** -4;

/**
 * Other factors that weights may have before they are rounded, beside those in a problem without sink and dropout:
 * relative to the sink, and with dropout's factor.
 */
function otherFactors({ kept, sinks }: ProjectionModel): readonly OtherFactor[] {
  const families = sinks === null ? [0, 1] : [0, 1, 2];
  const shifts = kept === null ? [0] : [0, -Math.log2(kept.share)];
  return families
    .flatMap((family) => shifts.map((shift) => ({ family, shift })))
    .filter(({ family, shift }) => family === 2 || shift !== 0);
}

/** The rules by which weights are summed up in a problem. */
function rowRules(model: ProjectionModel, places: number): RowRules {
  const { weightFormat, weightScale, weightGroups, roundingErrors, roundings, kept } = model;
  const format = formats[weightFormat];
  return {
    keys: model.reference.shape.keys,
    groups: weightGroups,
    smallest: smallestNormal(format) / weightScale,
    mostLost: smallestSubnormal(format) / 2 / weightScale / (kept?.share ?? 1),
    roundings,
    places,
    roundingErrors,
    // Sums that may be truncated count as of one sign already.
    countsEqual: !model.sumsTruncate,
    factors: otherFactors(model),
  };
}

/** Collects 64 rows at a time while their weights are walked over. */
export class RowCollector {
  readonly #model: ProjectionModel;
  readonly #memory: RowMemory;
  /** 1 for each row that is not left out. */
  readonly #isUsed = new Uint8Array(walkRows);
  /** The sink's weight by row; 0 for none. */
  readonly #sinks = new Float64Array(walkRows);
  readonly #elements: RowElements;
  readonly #systematic = new Float64Array(instrumentCount);
  readonly #written = new Float64Array(instrumentCount);
  readonly #common = new Float64Array(instrumentCount);

  private constructor(model: ProjectionModel, memory: RowMemory, elements: RowElements) {
    this.#model = model;
    this.#memory = memory;
    this.#elements = elements;
  }

  /**
   * Calls `work` with a collector and returns its result. `places` are those of an octave in the sums that rows are pooled by.
   */
  static with<Result>(
    memories: WorkingMemories,
    model: ProjectionModel,
    places: number,
    work: (collector: RowCollector) => Result,
  ): Result {
    const { reference, outputFormat, outputGroups } = model;
    const rules = { vDim: reference.shape.vDim, outputFormat, outputGroups };
    return withRowMemory(memories, rowRules(model, places), (memory) =>
      RowElements.with(memories, rules, (elements) =>
        work(new RowCollector(model, memory, elements)),
      ),
    );
  }

  /** The directions of the rows that were started, [64 × vDim] by instrument. */
  get directions(): readonly Float64Array[] {
    return this.#elements.directions;
  }

  /**
   * Starts `rows` rows from row `first` of all on. Rows that hold NaN or infinities, among their inputs or
   * outputs, rows without keys, rows whose weights may be off by half and rows whose sums overflow fp64 are
   * left out.
   */
  begin(first: number, rows: number): void {
    const { reference, makeInstruments, out, bound, sinks } = this.#model;
    const { heads, queries } = reference.shape;
    const elements = this.#elements;
    elements.load(first, rows, reference, out);
    makeInstruments(elements, first, rows);
    elements.measure(rows);
    this.#isUsed.fill(0);
    for (let i = 0; i < rows; i++) {
      const row = first + i;
      const total = reference.denominator[row];
      const largest = reference.maximum[row];
      const sink = sinks?.[Math.floor(row / queries) % heads] ?? -Infinity;
      const isUsed =
        elements.isMeasured(i) &&
        levels[reference.level[row]] !== 'special' &&
        Number.isFinite(total) &&
        Number.isFinite(largest) &&
        !bound.row(row).isCoarse;
      if (!isUsed) continue;
      this.#isUsed[i] = 1;
      // For a row with a sink: the sink's score where it is the largest, in place of no maximum at all.
      const origin = sink === -Infinity ? 0 : Math.max(largest, sink);
      const [toLargest, toSink] = [total - largest, total - origin];
      this.#sinks[i] = Math.exp(sink - total);
      const exponents = [toLargest / Math.LN2, 0, toSink / Math.LN2];
      this.#memory.begin(i, Math.exp(toLargest), exponents);
      this.#memory.own(i).set(elements.own(i));
    }
  }

  /** Whether the `i`-th of the rows that were started is not left out. */
  isUsed(i: number): boolean {
    return this.#isUsed[i] === 1;
  }

  /** O·X of the `i`-th row by instrument. */
  own(i: number): Float64Array {
    return this.#elements.own(i);
  }

  /** Adds one tile of weights, times their projections, to its rows. */
  visit({ weights, applied, rows, keys, projections }: WeightTile): void {
    const { tile } = this.#memory;
    [weights, applied, ...projections].forEach((numbers, block) =>
      tile[block].set(numbers.subarray(0, rows * walkRows)),
    );
    if (this.#memory.keep(keys)) this.#memory.addKept(this.#isUsed);
  }

  /** Adds the weights of the rows that were started, times their projections, to those of `pooled` by place. */
  end(pooled: PooledProjections): void {
    this.#memory.addKept(this.#isUsed);
    this.#memory.takePhases(pooled.phases);
  }

  /** The collected row `row`, the `local`-th of the 64; null for one that is left out. */
  finish(row: number, local: number, pooled: PooledProjections): RowProjections | null {
    const { reference, bound, sumsTruncate, scoreError, premises } = this.#model;
    const { lse: exactLse } = reference.quantities;
    const { qkDim } = reference.shape;
    if (this.#isUsed[local] === 0) return null;
    const sums = this.#memory.sums(local);
    const { typicalWeight, addition, keys, weightRounding, range, declared } = bound.row(row);
    const count = instrumentCount;
    const [systematic, written, common] = [this.#systematic, this.#written, this.#common];
    // Sums that do not truncate round to nearest: by half of the last place of fp32.
    const ofAddition = sumsTruncate ? addition : Math.min(addition, 2 ** -24);
    const outputs = this.#elements.project(local, Math.sqrt(keys) * ofAddition);
    for (let at = 0; at < outputs.places.length; at++) pooled.outputs[at] += outputs.places[at];
    // Four elementwise operations: at most one errs to one side, all are uniform.
    const { elementwise, underflow, exponential } = premises;
    const truncated = sumsTruncate ? (keys * addition) / 4 : 0;
    // Half of the range is the largest magnitude in V.
    const floor = (keys + 2) * underflow + keys * 2 ** -126 * (range / 2);
    // The four operations of a score are independent of each other, and of its sum.
    const random =
      exponential +
      scoreSize(typicalWeight - exponential, elementwise, Math.sqrt(qkDim) * addition) *
        Math.hypot(Math.sqrt(qkDim) * ofAddition, 2 * elementwise);
    const { own: ofRow, moments, products, weightSquares, lost, mass, drift } = sums;
    const variance = sumsTruncate ? keys : Math.max(sums.variance, keys);
    const sink = this.#sinks[local];
    const ofDominated = sums.appliedSquares > dominated * sums.applied ** 2 ? 1 : 0;
    for (let d = 0; d < count; d++) {
      const own = ofRow[d];
      const shared = Math.max(
        moments[d] - 2 * own * products[d] + own * own * weightSquares,
        sums.difference(d),
      );
      common[d] = Math.hypot(
        random * Math.sqrt(shared),
        own * 2 * elementwise,
        own * Math.sqrt(variance) * ofAddition,
      );
      // Errors of weights so large do not add up: all of them count.
      const coarse = typicalWeight > largestRandomError ? typicalWeight : 0;
      const ofScore = sums.absolute(d) + Math.abs(own) * sums.absolute(count);
      const ofScores = (scoreError + coarse + declared.ofWeights) * ofScore;
      written[d] = declared.ofScores * ofScore;
      systematic[d] =
        (floor + declared.floor) * outputs.total[d] +
        lost[d] +
        (truncated + declared.ofValue) * outputs.ofOutputs[d] +
        declared.ofMagnitude * outputs.ofMagnitudes[d] +
        (declared.halves + ofDominated) * outputs.outputWorst[d] +
        (elementwise + drift * ofAddition + sink * typicalWeight) * Math.abs(own) +
        ofScores;
    }
    // The LSE may be that of the keys alone.
    const isOfKeys = sink > 0 && !this.#model.isSinkInLse;
    const ofLse = isOfKeys ? Math.exp(reference.denominator[row] - exactLse.values[row]) : 1;
    const massOfLse = ofLse === 1 ? mass : mass.map((x) => x * Math.min(ofLse, 2 ** 500));
    pooled.addMass(mass, ofRow, massOfLse);
    const { last, first, otherwise, exponents, smooth, squares } = sums;
    const { signed, outputWorst, accumulated, places } = outputs;
    return {
      signed,
      norm: this.#elements.norm(local),
      outputWorst,
      accumulated,
      places,
      systematic,
      written,
      common,
      smooth,
      squares,
      weights: sums,
      outputs: outputs.pool,
      mass: massOfLse,
      known: last.map((x, d) => {
        let largest = Math.max(Math.abs(x), Math.abs(first[d]));
        for (let at = d; at < otherwise.length; at += count)
          largest = Math.max(largest, Math.abs(otherwise[at]));
        return largest;
      }),
      shifts: [...exponents].map((exponent) => exponent - exponents[0]),
      rounding: weightRounding,
    };
  }
}

/**
 * The size that a row's scores may have: `typical` is the error of a weight after √d additions, with a relative
 * error of `ofSum` in all, and four elementwise operations.
 */
function scoreSize(typical: number, elementwise: number, ofSum: number): number {
  return Math.max(0, typical) / (ofSum + 4 * elementwise);
}
