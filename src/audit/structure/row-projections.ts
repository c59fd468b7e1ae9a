import { levels, type AttentionReference, type WeightTile } from '../../../oracles/index.js';
import {
  formats,
  smallestNormal,
  smallestSubnormal,
  ulp,
  type FormatName,
} from '../../formats/index.js';
import type { KeptWeights } from '../../problem/index.js';
import type { KernelBound } from '../bounds/index.js';
import { outputPlaces } from './common-offset.js';
import type { Premises } from '../premises/premises.js';
import { EqualWeights } from './equal-weights.js';
import { ErrorPool, type NearlyEqual } from './error-pool.js';
import type { Instrument } from './instruments.js';
import type { PooledProjections } from './pooled-projections.js';
import { smoothPlaces, weightFamilies, type RowProjections } from './row-tolerance.js';
import { walkRows } from './structure-statistic.js';

/** Numbers of fp64 between which squares and their inverses stay in its range with room to spare. */
const sizes = { least: 2 ** -300, most: 2 ** 300 } as const;

/** Whether statistics can square a magnitude and what it is weighed by: everything but fp64 near its ends. */
function hasSquare(magnitude: number): boolean {
  return magnitude === 0 || (magnitude > sizes.least && magnitude < sizes.most);
}

/** What all rows' projections are collected by. */
interface ProjectionModel {
  readonly reference: AttentionReference;
  /** The kernel's output, decoded. */
  readonly out: Float64Array;
  readonly outputFormat: FormatName;
  readonly bound: KernelBound;
  readonly instruments: readonly Instrument[];
  /** Of weights that round alike, and of outputs that do. */
  readonly weightGroups: NearlyEqual;
  readonly outputGroups: NearlyEqual;
  /** Whether sums over keys may be truncated, and so err to one side. */
  readonly sumsTruncate: boolean;
  /** The most that weights may be off as a function of their score. */
  readonly scoreError: number;
  /** Of an elementwise operation, and of one whose result is subnormal. */
  readonly premises: Pick<Premises, 'elementwise' | 'underflow' | 'exponential'>;
  /** P's format, and the relative error of rounding to it by place; null where that is as fine as fp32. */
  readonly weightFormat: FormatName;
  /** What P is multiplied by before it is rounded. */
  readonly weightScale: number;
  readonly roundingErrors: Float64Array | null;
  /** What dropout keeps; null without. */
  readonly kept: KeptWeights | null;
  /** How many times each weight is rounded on its way to V: Theorem 12 of docs/bounds.md. */
  readonly roundings: number;
  /** By head: the scores of sinks, natural units; null without. */
  readonly sinks: Float64Array | null;
  /** Whether the LSE has the sink. */
  readonly isSinkInLse: boolean;
}

/** Weights that may be off by more, relatively, are no longer taken to err at random. */
const largestRandomError = 2 ** -4;

/**
 * A row whose Σ w² is more is that of one key: its outputs are that key's values times one factor near 1, so
 * that how each rounds follows from its significand and the factor, as an instrument's weights may. Their
 * worst case counts.
 */
const dominated = 1 - 2 ** -4;

/** What is kept of a row while its weights are met. */
interface RowSums {
  isUsed: boolean;
  readonly pool: ErrorPool;
  /** Null where sums may be truncated, which counts as of one sign already. */
  readonly equal: EqualWeights | null;
  /** Σ of squares: (w·X·v)², w·(w·X·v) per instrument, and w² at the end. */
  readonly moments: Float64Array;
  /** Σ w·X·v by coarse place relative to the largest weight, per instrument. */
  readonly rounded: Float64Array;
  /** Σ (w·X·v)² by coarse place relative to the largest weight, per instrument. */
  readonly squares: Float64Array;
  /** Σ of what rounding a subnormal weight may lose, times |X·v|, per instrument. */
  readonly lost: Float64Array;
  /** Σ of P's rounding errors if the division by the row sum comes last, and if it comes first. */
  readonly last: Float64Array;
  readonly first: Float64Array;
  /** The same relative to what else weights may be multiplied by (log2): per factor, per instrument. */
  readonly otherwise: Float64Array;
  /** Σ p and Σ p² of the weights that reach V. */
  applied: number;
  appliedSquares: number;
  /** Σ w by coarse place, per family. */
  readonly mass: Float64Array;
  /** O·X per instrument. */
  readonly own: Float64Array;
  /** log2 of what each family multiplies the weights by, and the factor of the first. */
  readonly exponents: Float64Array;
  toLargest: number;
  /** The sink's weight; 0 for none. */
  sink: number;
}

/** Groups that a row's pool has room for from the start, at most. */
const mostGroups = 256;

/** What else the weights of a row may be multiplied by before they are rounded: sinks' and dropout's, log2. */
const mostFactors = 6;

function emptySums(count: number, groups: number, equal: EqualWeights | null): RowSums {
  return {
    isUsed: false,
    pool: new ErrorPool(count + 1, groups),
    equal,
    moments: new Float64Array(2 * count + 1),
    rounded: new Float64Array(count * smoothPlaces),
    squares: new Float64Array(count * smoothPlaces),
    lost: new Float64Array(count),
    last: new Float64Array(count),
    first: new Float64Array(count),
    otherwise: new Float64Array(mostFactors * count),
    applied: 0,
    appliedSquares: 0,
    mass: new Float64Array(weightFamilies * smoothPlaces),
    own: new Float64Array(count),
    exponents: new Float64Array(weightFamilies),
    toLargest: 1,
    sink: 0,
  };
}

/** What weights may be multiplied by before they are rounded: a family's factor times 2^shift. */
interface OtherFactor {
  readonly family: number;
  readonly shift: number;
}

/**
 * What weights may be multiplied by before they are rounded, beside what they are in a problem without sink and dropout:
 * relative to the sink, and with dropout's factor.
 */
function otherFactors({ kept, sinks }: ProjectionModel): readonly OtherFactor[] {
  const families = sinks === null ? [0, 1] : [0, 1, 2];
  const shifts = kept === null ? [0] : [0, -Math.log2(kept.share)];
  return families
    .flatMap((family) => shifts.map((shift) => ({ family, shift })))
    .filter(({ family, shift }) => family === 2 || shift !== 0);
}

/** Collects 64 rows at a time while their weights are walked over. */
export class RowCollector {
  readonly #model: ProjectionModel;
  readonly #rows: RowSums[];
  readonly #outputs: ErrorPool;
  readonly #factors: readonly OtherFactor[];
  readonly #smooth: Float64Array;
  readonly #places: Float64Array;
  readonly #of: Pick<
    RowProjections,
    'signed' | 'norm' | 'outputWorst' | 'systematic' | 'common' | 'accumulated'
  >;

  constructor(model: ProjectionModel) {
    const count = model.instruments.length;
    const { keys } = model.reference.shape;
    // Of weights that are as different as they may be; of long rows not, which have more alike.
    const groups = Math.min(keys, model.weightGroups.size, mostGroups);
    this.#model = model;
    this.#factors = otherFactors(model);
    this.#rows = Array.from({ length: walkRows }, () =>
      emptySums(count, groups, model.sumsTruncate ? null : new EqualWeights(keys)),
    );
    this.#outputs = new ErrorPool(count, model.reference.shape.vDim);
    this.#smooth = new Float64Array(count * smoothPlaces);
    this.#places = new Float64Array(count * outputPlaces);
    const numbers = () => new Float64Array(count);
    this.#of = {
      signed: numbers(),
      norm: numbers(),
      outputWorst: numbers(),
      systematic: numbers(),
      common: numbers(),
      accumulated: numbers(),
    };
  }

  /**
   * Starts `rows` rows from row `first` of all on. Rows that hold NaN or infinities, among their inputs or
   * outputs, rows without keys, rows whose weights may be off by half and rows whose sums overflow fp64 are
   * left out.
   */
  begin(first: number, rows: number): void {
    const { reference, instruments, out, bound, sinks } = this.#model;
    const { out: exactOut } = reference.quantities;
    const { vDim, heads, queries } = reference.shape;
    for (let i = 0; i < rows; i++) {
      const row = first + i;
      const sums = this.#rows[i];
      const total = reference.denominator[row];
      const largest = reference.maximum[row];
      const sink = sinks?.[Math.floor(row / queries) % heads] ?? -Infinity;
      const toLargest = total - largest;
      sums.toLargest = Math.exp(toLargest);
      sums.sink = Math.exp(sink - total);
      // Of a row with a sink: the sink's score where it is the largest, in place of no maximum at all.
      const origin = sink === -Infinity ? 0 : Math.max(largest, sink);
      sums.exponents.set([toLargest, 0, total - origin].map((x) => x / Math.LN2));
      sums.applied = sums.appliedSquares = 0;
      sums.otherwise.fill(0);
      sums.pool.clear();
      sums.equal?.clear();
      sums.moments.fill(0);
      sums.rounded.fill(0);
      sums.mass.fill(0);
      sums.squares.fill(0);
      sums.lost.fill(0);
      sums.last.fill(0);
      sums.first.fill(0);
      sums.isUsed =
        levels[reference.level[row]] !== 'special' &&
        Number.isFinite(total) &&
        Number.isFinite(largest) &&
        !bound.row(row).isCoarse;
      for (let at = row * vDim; at < (row + 1) * vDim; at++)
        sums.isUsed &&=
          Number.isFinite(out[at] - exactOut.values[at]) && hasSquare(exactOut.magnitude[at]);
      instruments.forEach(({ direction, pattern }, d) => {
        let own = 0;
        let norm = 0;
        for (let at = row * vDim; at < (row + 1) * vDim; at++) {
          own += exactOut.values[at] * direction[at];
          norm += pattern[at] * direction[at];
        }
        sums.own[d] = own;
        sums.isUsed &&= Number.isFinite(own) && Number.isFinite(norm);
      });
    }
  }

  /** Adds one tile of weights, times their projections, to its rows and to `pooled`. */
  visit(tile: WeightTile, pooled: PooledProjections): void {
    const { weights, applied, rows, keys, stride, projections } = tile;
    const { weightGroups, weightFormat, weightScale, roundingErrors, kept, roundings } =
      this.#model;
    const rate = 1 / (kept?.share ?? 1);
    const factors = this.#factors;
    const smallest = smallestNormal(formats[weightFormat]) / weightScale;
    const half = smallestSubnormal(formats[weightFormat]) / 2 / weightScale;
    const count = projections.length;
    const { phases, places } = pooled;
    const ofInstrument = weightFamilies * places;
    const errors = new Float64Array(count + 1);
    for (let i = 0; i < rows; i++) {
      const sums = this.#rows[i];
      if (!sums.isUsed) continue;
      const { pool, moments, rounded, squares, lost, mass, toLargest, exponents } = sums;
      const { last: roundedLast, first: roundedFirst, equal } = sums;
      const [first, second, third] = exponents as unknown as readonly [number, number, number];
      let [sum, sumOfSquares] = [sums.applied, sums.appliedSquares];
      for (let j = 0; j < keys; j++) {
        const at = i * stride + j;
        const w = weights[at];
        if (w === 0) continue;
        const exponent = Math.log2(w);
        const x = fractionOf(exponent + first);
        const y = fractionOf(exponent + second);
        const z = fractionOf(exponent + third);
        const inFirst = Math.floor(x * places);
        const inSecond = places + Math.floor(y * places);
        const inThird = 2 * places + Math.floor(z * places);
        const nearest = Math.floor(x * smoothPlaces);
        // A weight of one is not rounded.
        const ifLast = x === 0 ? 0 : (roundingErrors?.[inFirst] ?? 0);
        const ifFirst = roundingErrors?.[inSecond - places] ?? 0;
        mass[nearest] += w;
        mass[smoothPlaces + Math.floor(y * smoothPlaces)] += w;
        mass[2 * smoothPlaces + Math.floor(z * smoothPlaces)] += w;
        const p = applied[at];
        sum += p;
        sumOfSquares += p * p;
        for (let d = 0; d < count; d++) {
          const c = p * projections[d][at];
          errors[d] = c;
          moments[d] += c * c;
          moments[count + d] += c * w;
          rounded[d * smoothPlaces + nearest] += c;
          squares[d * smoothPlaces + nearest] += c * c;
          roundedLast[d] += c * ifLast;
          roundedFirst[d] += c * ifFirst;
          if (w < smallest)
            lost[d] += roundings * Math.min(p, half * rate) * Math.abs(projections[d][at]);
          const of = d * ofInstrument;
          phases[of + inFirst] += c;
          phases[of + inSecond] += c;
          phases[of + inThird] += c;
        }
        for (let f = 0; f < factors.length && roundingErrors !== null; f++) {
          const { family, shift } = factors[f];
          const place = Math.floor(fractionOf(exponent + exponents[family] + shift) * places);
          for (let d = 0; d < count; d++)
            sums.otherwise[f * count + d] += errors[d] * roundingErrors[place];
        }
        equal?.add(w);
        errors[count] = w;
        moments[2 * count] += w * w;
        pool.addAll(weightGroups.group(w * toLargest), errors);
      }
      sums.applied = sum;
      sums.appliedSquares = sumOfSquares;
    }
  }

  /** The collected row `row`, the `local`-th of the 64; null for one that is left out. */
  finish(row: number, local: number, pooled: PooledProjections): RowProjections | null {
    const { reference, bound, instruments, sumsTruncate, scoreError, premises } = this.#model;
    const { out: exactOut, lse: exactLse } = reference.quantities;
    const { qkDim } = reference.shape;
    const sums = this.#rows[local];
    if (!sums.isUsed) return null;
    const { typicalWeight, addition, keys, weightRounding, range, declared } = bound.row(row);
    const count = instruments.length;
    const result = this.#of;
    const { systematic, common } = result;
    for (const numbers of Object.values(result)) numbers.fill(0);
    // Sums that do not truncate round to nearest: by half of the last place of fp32.
    const ofAddition = sumsTruncate ? addition : Math.min(addition, 2 ** -24);
    this.#addOutputs(row, pooled, Math.sqrt(keys) * ofAddition);
    // Four elementwise operations: one errs to one side at the most, all are uniform.
    const { elementwise, underflow, exponential } = premises;
    const truncated = sumsTruncate ? (keys * addition) / 4 : 0;
    // Half of the range is the largest magnitude in V.
    const floor = (keys + 2) * underflow + keys * 2 ** -126 * (range / 2);
    // The four operations of a score are independent of each other, and of its sum.
    const random =
      exponential +
      scoreSize(typicalWeight - exponential, elementwise, Math.sqrt(qkDim) * addition) *
        Math.hypot(Math.sqrt(qkDim) * ofAddition, 2 * elementwise);
    const { pool, moments, rounded, squares, lost, mass, exponents } = sums;
    const { drift, variance } = sums.equal?.errors() ?? { drift: 0, variance: keys };
    const ofDominated = sums.appliedSquares > dominated * sums.applied ** 2 ? 1 : 0;
    for (let d = 0; d < count; d++) {
      const { direction } = instruments[d];
      let total = 0;
      let ofOutputs = 0;
      let ofMagnitudes = 0;
      for (let at = row * reference.shape.vDim; at < (row + 1) * reference.shape.vDim; at++) {
        total += Math.abs(direction[at]);
        ofOutputs += Math.abs(direction[at] * exactOut.values[at]);
        ofMagnitudes += Math.abs(direction[at]) * exactOut.magnitude[at];
      }
      const own = sums.own[d];
      const shared = Math.max(
        moments[d] - 2 * own * moments[count + d] + own * own * moments[2 * count],
        pool.coherentDifference(d, own),
      );
      common[d] = Math.hypot(
        random * Math.sqrt(shared),
        own * 2 * elementwise,
        own * Math.sqrt(Math.max(variance, keys)) * ofAddition,
      );
      // Errors of weights so large do not add up: all of them count.
      const coarse = typicalWeight > largestRandomError ? typicalWeight : 0;
      const ofScores =
        (scoreError + coarse + declared.ofWeights) *
        (pool.absolute(d) + Math.abs(own) * pool.absolute(count));
      systematic[d] =
        (floor + declared.floor) * total +
        lost[d] +
        (truncated + declared.ofValue) * ofOutputs +
        declared.ofMagnitude * ofMagnitudes +
        (declared.halves + ofDominated) * result.outputWorst[d] +
        (elementwise + drift * ofAddition + sums.sink * typicalWeight) * Math.abs(own) +
        ofScores;
      for (let place = 0; place < smoothPlaces; place++)
        this.#smooth[d * smoothPlaces + place] =
          rounded[d * smoothPlaces + place] - own * mass[place];
    }
    // The LSE may be that of the keys alone.
    const isOfKeys = sums.sink > 0 && !this.#model.isSinkInLse;
    const ofLse = isOfKeys ? Math.exp(reference.denominator[row] - exactLse.values[row]) : 1;
    const massOfLse = ofLse === 1 ? mass : mass.map((x) => x * Math.min(ofLse, 2 ** 500));
    pooled.addMass(mass, sums.own, massOfLse);
    const { last, first, otherwise } = sums;
    return {
      ...result,
      weights: pool,
      outputs: this.#outputs,
      places: this.#places,
      smooth: this.#smooth,
      mass: massOfLse,
      squares,
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

  /** Adds the errors of a row's outputs, and how they are rounded; `accumulated` relative to Σ w|v|. */
  #addOutputs(row: number, pooled: PooledProjections, accumulated: number): void {
    const { reference, out, outputFormat, instruments, outputGroups } = this.#model;
    const { out: exactOut } = reference.quantities;
    const { vDim } = reference.shape;
    const { signed, norm, outputWorst, accumulated: ofRow } = this.#of;
    const table = formats[outputFormat];
    const smallest = smallestNormal(table);
    const count = instruments.length;
    const errors = new Float64Array(count);
    this.#outputs.clear();
    this.#places.fill(0);
    for (let at = row * vDim; at < (row + 1) * vDim; at++) {
      const exact = exactOut.values[at];
      const error = out[at] - exact;
      const size = Math.abs(exact);
      const spacing = ulp(table, Math.min(size, table.maxFinite));
      const half = exact < 0 ? -spacing / 2 : spacing / 2;
      const place = Math.floor(((size / spacing) % 1) * outputPlaces);
      const ofSums = accumulated * exactOut.magnitude[at];
      const amplitude = Math.sqrt(half * half + ofSums * ofSums) * (exact < 0 ? -1 : 1);
      for (let d = 0; d < count; d++) {
        const x = instruments[d].direction[at];
        signed[d] += error * x;
        norm[d] += instruments[d].pattern[at] * x;
        outputWorst[d] += Math.abs(half * x);
        errors[d] = amplitude * x;
        ofRow[d] += ofSums * Math.abs(x);
        pooled.outputs[d * outputPlaces + place] += half * x;
        this.#places[d * outputPlaces + place] += half * x;
      }
      // Subnormal outputs are as far apart as the smallest normal ones.
      this.#outputs.addAll(outputGroups.group(size < smallest ? size + smallest : size), errors);
    }
  }
}

/** y less the whole number below; 0 for what is a whole number but for fp64's roundings. */
function fractionOf(y: number): number {
  return Math.max(0, y - Math.floor(y + 2 ** -36));
}

/**
 * The size that a row's scores may have: `typical` is what √d additions, in all of relative error `ofSum`, and four
 * elementwise operations do to a weight one after the other.
 */
function scoreSize(typical: number, elementwise: number, ofSum: number): number {
  return Math.max(0, typical) / (ofSum + 4 * elementwise);
}
