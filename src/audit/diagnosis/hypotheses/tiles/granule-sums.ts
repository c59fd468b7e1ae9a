import { clipRanges, type KeyRange } from '../../../../problem/index.js';
import type { SampleRow } from '../../hypothesis.js';
import type { RowReader } from '../../row-reader.js';

/** A stretch of keys that a loop over K and V takes in one step. */
export type KeyTile = KeyRange;

/** The tile that K and V of a tile come from, as distances in keys from its own, and whether its K is zero. */
interface TileSource {
  readonly keysFrom: number;
  readonly valuesFrom: number;
  readonly zeroKeys?: boolean;
}

/** The tile's own K and V. */
export const ownTile: TileSource = { keysFrom: 0, valuesFrom: 0 };

/** Σ over V of the ranking rows' tiles, granule by granule, so that a tile costs vDim operations. */
export class GranuleSums {
  readonly #sums: Float64Array;
  readonly #weights: Float64Array;
  readonly #granule: number;
  readonly #vDim: number;

  constructor(
    reader: RowReader,
    row: SampleRow,
    granule: number,
    { keysFrom, valuesFrom, zeroKeys = false }: TileSource,
  ) {
    const { keys, vDim } = reader.shape;
    const count = Math.ceil(keys / granule);
    this.#sums = new Float64Array((count + 1) * vDim);
    this.#weights = new Float64Array(count + 1);
    this.#granule = granule;
    this.#vDim = vDim;
    const dots = reader.dots(row.row, row.kv);
    const values = reader.valuesOf(row.row, row.kv);
    const [sums, weights] = [this.#sums, this.#weights];
    for (let g = 0; g < count; g++) {
      const ofGranule = sums.subarray((g + 1) * vDim, (g + 2) * vDim);
      ofGranule.set(sums.subarray(g * vDim, (g + 1) * vDim));
      weights[g + 1] = weights[g];
      for (const { begin, end } of clipRanges(row.ranges, g * granule, (g + 1) * granule))
        for (let j = begin; j < end; j++) {
          const dot = zeroKeys ? 0 : dots[j + keysFrom];
          if (dot === undefined) continue;
          const w = Math.exp(reader.score(dot, row.row, j) - row.denominator);
          weights[g + 1] += w;
          const from = (j + valuesFrom) * vDim;
          if (from < 0 || from >= values.length) continue;
          for (let c = 0; c < vDim; c++) ofGranule[c] += w * values[from + c];
        }
    }
  }

  weight({ begin, end }: KeyTile): number {
    return this.#weights[this.#at(end)] - this.#weights[this.#at(begin)];
  }

  sum({ begin, end }: KeyTile, column: number): number {
    const last = this.#sums[this.#at(end) * this.#vDim + column];
    return last - this.#sums[this.#at(begin) * this.#vDim + column];
  }

  #at(key: number): number {
    return Math.ceil(key / this.#granule);
  }
}
