import type { KeyRange } from '../../../../problem/index.js';
import type { SampleRow } from '../../hypothesis.js';
import type { RowReader } from '../../row-reader.js';

/** A stretch of keys that a loop over K and V takes in one step. */
export type KeyTile = KeyRange;

/** The tile that K and V of a tile come from, as distances in keys from its own, and whether its K is zero. */
export interface TileSource {
  readonly keysFrom: number;
  readonly valuesFrom: number;
  readonly zeroKeys?: boolean;
}

/** The tile's own K and V. */
export const ownTile: TileSource = { keysFrom: 0, valuesFrom: 0 };

/** Makes a function that tells the weight of a key whose K is that of another; undefined where there is no other. */
function weightsFrom(
  reader: RowReader,
  row: SampleRow,
  shares: Float64Array,
  { keysFrom, zeroKeys = false }: TileSource,
): (key: number) => number | undefined {
  const { keys } = reader.shape;
  if (keysFrom === 0 && !zeroKeys) return (key) => shares[key];
  const dots = reader.dots(row.row, row.kv);
  const of = (dot: number, key: number) =>
    Math.exp(reader.score(dot, row.row, key) - row.denominator);
  const { bias, alibiSlopes } = reader.problem;
  const [first] = row.ranges;
  const seesAll = first?.begin === 0 && first.end === keys;
  // Where scores hang on dot products alone, that of another key is its own.
  const isPlain = bias === undefined && alibiSlopes === undefined && seesAll;
  if (zeroKeys) {
    const ofZero = of(0, 0);
    return isPlain ? () => ofZero : (key) => of(0, key);
  }
  return (key) => {
    const source = key + keysFrom;
    if (source < 0 || source >= keys) return undefined;
    return isPlain ? shares[source] : of(dots[source], key);
  };
}

/** Σ over V of the ranking rows' tiles, granule by granule, so that a tile costs vDim operations. */
export class GranuleSums {
  readonly #sums: Float64Array;
  readonly #weights: Float64Array;
  readonly #granule: number;
  readonly #vDim: number;

  constructor(
    reader: RowReader,
    row: SampleRow,
    shares: Float64Array,
    granule: number,
    source: TileSource,
  ) {
    const { keys, vDim } = reader.shape;
    const count = Math.ceil(keys / granule);
    this.#sums = new Float64Array((count + 1) * vDim);
    this.#weights = new Float64Array(count + 1);
    this.#granule = granule;
    this.#vDim = vDim;
    const weightOf = weightsFrom(reader, row, shares, source);
    const values = reader.valuesOf(row.row, row.kv);
    const [sums, weights] = [this.#sums, this.#weights];
    for (let g = 0; g < count; g++) {
      const at = (g + 1) * vDim;
      sums.copyWithin(at, g * vDim, at);
      weights[g + 1] = weights[g];
      for (const range of row.ranges) {
        const end = Math.min(range.end, (g + 1) * granule);
        for (let j = Math.max(range.begin, g * granule); j < end; j++) {
          const w = weightOf(j);
          if (w === undefined) continue;
          weights[g + 1] += w;
          const from = (j + source.valuesFrom) * vDim;
          if (from < 0 || from >= values.length) continue;
          for (let c = 0; c < vDim; c++) sums[at + c] += w * values[from + c];
        }
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
