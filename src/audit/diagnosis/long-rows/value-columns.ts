import { decodeTensor } from '../../../formats/index.js';
import type { Problem, ProblemShape } from '../../../problem/index.js';
import {
  addWeighed,
  emptySums,
  predictSums,
  type PredictionPlace,
  type RowPrediction,
  type WeightedRow,
} from '../prediction.js';

/** Numbers of the columns that are held: 64 MiB in fp64. */
const heldNumbers = 2 ** 23;
/** Rows of V that are decoded at once. */
const decodedRows = 512;

/** The largest divisor of a number of columns of which so many keys are not too much to hold. */
function widthOf(keys: number, vDim: number): number {
  let width = Math.max(1, Math.min(vDim, Math.floor(heldNumbers / Math.max(keys, 1))));
  while (vDim % width !== 0) width -= 1;
  return width;
}

/** The places of the `count` largest numbers, ascending. */
function placesOfLargest(numbers: Float64Array, count: number): number[] {
  const places = [...numbers.keys()].sort((a, b) => numbers[b] - numbers[a]);
  return places.slice(0, count).sort((a, b) => a - b);
}

/**
 * V of a problem whose rows have too many keys to hold it in fp64: some columns are held, all are decoded a few rows at a time. An output's
 * columns are sums with the same weights, so that a cause that these columns contradict is none.
 */
export class ValueColumns {
  /** The columns that are held. */
  readonly columns: readonly number[];
  readonly #problem: Problem;
  readonly #shape: ProblemShape;
  /** The held columns of the head that was asked for last, and the heads of all that were. */
  #held: { readonly kv: number; readonly values: Float64Array } | null = null;
  readonly #heads = new WeakMap<Float64Array, number>();

  /** @param errors the errors of the output by column: those that err most are held */
  constructor(problem: Problem, shape: ProblemShape, errors: Float64Array) {
    this.#problem = problem;
    this.#shape = shape;
    this.columns = placesOfLargest(errors, widthOf(shape.keys, shape.vDim));
  }

  /** The held columns of a flat kv head, [keys × columns], with a row of zeros behind the last key for a sink. */
  held(kv: number): Float64Array {
    if (this.#held?.kv === kv) return this.#held.values;
    this.#held = null;
    const { keys } = this.#shape;
    const { columns } = this;
    const rows = this.#problem.sink === undefined ? keys : keys + 1;
    const values = new Float64Array(rows * columns.length);
    this.#decode(kv, (some, firstKey, count) => {
      const { vDim } = this.#shape;
      for (let i = 0, to = firstKey * columns.length; i < count; i++)
        for (const column of columns) values[to++] = some[i * vDim + column];
    });
    this.#held = { kv, values };
    this.#heads.set(values, kv);
    return values;
  }

  /** The prediction of all columns for weights that are applied to what `held` returned. */
  predict(place: PredictionPlace, row: WeightedRow): RowPrediction {
    const kv = this.#heads.get(row.values);
    if (kv === undefined) throw new Error('these weights are not of the held columns of a head');
    const sums = emptySums(place.vDim);
    this.#decode(kv, (some, firstKey, count) => {
      const weights = row.weights.subarray(firstKey, firstKey + count);
      addWeighed(sums, weights, some, place.vDim);
    });
    return predictSums(place, row, sums);
  }

  /** Decodes V of a head some rows at a time. */
  #decode(kv: number, take: (values: Float64Array, firstKey: number, count: number) => void): void {
    const { keys, vDim } = this.#shape;
    const room = new Float64Array(decodedRows * vDim);
    for (let key = 0; key < keys; key += decodedRows) {
      const count = Math.min(decodedRows, keys - key);
      const first = (kv * keys + key) * vDim;
      decodeTensor(this.#problem.v, first, first + count * vDim, room);
      take(room, key, count);
    }
  }
}
