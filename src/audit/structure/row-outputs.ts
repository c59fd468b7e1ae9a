import type { AttentionReference } from '../../../oracles/index.js';
import { formats, smallestNormal, ulp, type FormatName } from '../../formats/index.js';
import { outputPlaces } from './common-offset.js';
import { ErrorPool, type NearlyEqual } from './error-pool.js';
import type { Instrument } from './instruments.js';
import type { PooledProjections } from './pooled-projections.js';

/** The context in which all rows' outputs are collected. */
interface OutputModel {
  readonly reference: AttentionReference;
  /** The kernel's output, decoded. */
  readonly out: Float64Array;
  readonly outputFormat: FormatName;
  readonly instruments: readonly Instrument[];
  /** Groups of outputs that round alike. */
  readonly outputGroups: NearlyEqual;
}

/** The errors of one row's outputs, per instrument, and their roundings. */
export class RowOutputs {
  /** Σ r·X and Σ Y·X. */
  readonly signed: Float64Array;
  readonly norm: Float64Array;
  /** Σ half ulp·|X|. */
  readonly outputWorst: Float64Array;
  /** √3 standard deviations of the sums over keys, if they err alike in all columns. */
  readonly accumulated: Float64Array;
  /** Σ half ulp·X by place in an ulp. */
  readonly places: Float64Array;
  /** The errors of rounding and of the sums over keys: outputs that round alike are a group. */
  readonly pool: ErrorPool;
  readonly #model: OutputModel;
  readonly #errors: Float64Array;
  /** By column: half an ulp and the size of an error, with the output's sign; the error of sums; place in an ulp; group. */
  readonly #halves: Float64Array;
  readonly #amplitudes: Float64Array;
  readonly #ofSums: Float64Array;
  readonly #places: Uint8Array;
  readonly #groups: Int32Array;

  constructor(model: OutputModel) {
    const count = model.instruments.length;
    const numbers = () => new Float64Array(count);
    this.#model = model;
    this.#errors = numbers();
    this.signed = numbers();
    this.norm = numbers();
    this.outputWorst = numbers();
    this.accumulated = numbers();
    this.places = new Float64Array(count * outputPlaces);
    const { vDim } = model.reference.shape;
    this.pool = new ErrorPool(count, vDim);
    this.#halves = new Float64Array(vDim);
    this.#amplitudes = new Float64Array(vDim);
    this.#ofSums = new Float64Array(vDim);
    this.#places = new Uint8Array(vDim);
    this.#groups = new Int32Array(vDim);
  }

  /** Collects a row, and adds its roundings by place to `pooled`. `accumulated` is the error of sums, relative to Σ w|v|. */
  collect(row: number, pooled: PooledProjections, accumulated: number): void {
    const { vDim } = this.#model.reference.shape;
    this.#roundingsOf(row * vDim, accumulated);
    this.places.fill(0);
    for (let d = 0; d < this.signed.length; d++) this.#project(row * vDim, d, pooled);
    const [groups, amplitudes, errors] = [this.#groups, this.#amplitudes, this.#errors];
    const { instruments } = this.#model;
    this.pool.clear();
    for (let c = 0; c < vDim; c++) {
      for (let d = 0; d < errors.length; d++)
        errors[d] = amplitudes[c] * instruments[d].direction[row * vDim + c];
      this.pool.addAll(groups[c], errors);
    }
  }

  /** Computes the rounding of each output of a row, from flat element `first` on, and the error of its sums. */
  #roundingsOf(first: number, accumulated: number): void {
    const { reference, outputFormat, outputGroups } = this.#model;
    const { values, magnitude } = reference.quantities.out;
    const table = formats[outputFormat];
    const smallest = smallestNormal(table);
    for (let c = 0; c < this.#halves.length; c++) {
      const exact = values[first + c];
      const size = Math.abs(exact);
      const spacing = ulp(table, Math.min(size, table.maxFinite));
      const half = spacing / 2;
      const ofSums = accumulated * magnitude[first + c];
      const amplitude = Math.sqrt(half * half + ofSums * ofSums);
      const ulps = size / spacing;
      this.#places[c] = (ulps - Math.floor(ulps)) * outputPlaces;
      this.#ofSums[c] = ofSums;
      this.#halves[c] = exact < 0 ? -half : half;
      this.#amplitudes[c] = exact < 0 ? -amplitude : amplitude;
      // Subnormal outputs are as far apart as the smallest normal ones.
      this.#groups[c] = outputGroups.group(size < smallest ? size + smallest : size);
    }
  }

  /** Projects a row's errors, and their bounds, on an instrument. */
  #project(first: number, d: number, pooled: PooledProjections): void {
    const { reference, out, instruments } = this.#model;
    const { values } = reference.quantities.out;
    const { direction, pattern } = instruments[d];
    const [halves, allSums, byPlace] = [this.#halves, this.#ofSums, this.#places];
    const [ofRow, ofAll] = [this.places, pooled.outputs];
    let signed = 0;
    let norm = 0;
    let worst = 0;
    let accumulated = 0;
    for (let c = 0; c < halves.length; c++) {
      const x = direction[first + c];
      const rounding = halves[c] * x;
      signed += (out[first + c] - values[first + c]) * x;
      norm += pattern[first + c] * x;
      worst += Math.abs(rounding);
      accumulated += allSums[c] * Math.abs(x);
      ofRow[d * outputPlaces + byPlace[c]] += rounding;
      ofAll[d * outputPlaces + byPlace[c]] += rounding;
    }
    this.signed[d] = signed;
    this.norm[d] = norm;
    this.outputWorst[d] = worst;
    this.accumulated[d] = accumulated;
  }
}
