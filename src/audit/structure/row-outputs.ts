import type { AttentionReference } from '../../../oracles/index.js';
import { formats, smallestNormal, ulp, type FormatName } from '../../formats/index.js';
import { outputPlaces } from './common-offset.js';
import { ErrorPool, type NearlyEqual } from './error-pool.js';
import type { Instrument } from './instruments.js';
import type { PooledProjections } from './pooled-projections.js';

/** What all rows' outputs are collected by. */
interface OutputModel {
  readonly reference: AttentionReference;
  /** The kernel's output, decoded. */
  readonly out: Float64Array;
  readonly outputFormat: FormatName;
  readonly instruments: readonly Instrument[];
  /** Of outputs that round alike. */
  readonly outputGroups: NearlyEqual;
}

/** The errors of one row's outputs, per instrument, and how they are rounded. */
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
    this.pool = new ErrorPool(count, model.reference.shape.vDim);
  }

  /** Collects a row, and adds its roundings by place to `pooled`. `accumulated`: what sums err by, relative to Σ w|v|. */
  collect(row: number, pooled: PooledProjections, accumulated: number): void {
    const { reference, out, outputFormat, instruments, outputGroups } = this.#model;
    const { values, magnitude } = reference.quantities.out;
    const { vDim } = reference.shape;
    const table = formats[outputFormat];
    const smallest = smallestNormal(table);
    const { signed, norm, outputWorst, places, pool } = this;
    const ofRow = this.accumulated;
    const errors = this.#errors;
    for (const sums of [signed, norm, outputWorst, ofRow, places]) sums.fill(0);
    pool.clear();
    for (let at = row * vDim; at < (row + 1) * vDim; at++) {
      const exact = values[at];
      const error = out[at] - exact;
      const size = Math.abs(exact);
      const spacing = ulp(table, Math.min(size, table.maxFinite));
      const half = exact < 0 ? -spacing / 2 : spacing / 2;
      const place = Math.floor(((size / spacing) % 1) * outputPlaces);
      const ofSums = accumulated * magnitude[at];
      const amplitude = Math.sqrt(half * half + ofSums * ofSums) * (exact < 0 ? -1 : 1);
      for (let d = 0; d < errors.length; d++) {
        const { direction, pattern } = instruments[d];
        const x = direction[at];
        signed[d] += error * x;
        norm[d] += pattern[at] * x;
        outputWorst[d] += Math.abs(half * x);
        errors[d] = amplitude * x;
        ofRow[d] += ofSums * Math.abs(x);
        pooled.outputs[d * outputPlaces + place] += half * x;
        places[d * outputPlaces + place] += half * x;
      }
      // Subnormal outputs are as far apart as the smallest normal ones.
      pool.addAll(outputGroups.group(size < smallest ? size + smallest : size), errors);
    }
  }
}
