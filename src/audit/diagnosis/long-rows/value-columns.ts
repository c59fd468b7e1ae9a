import { decodeTensor } from '../../../formats/index.js';
import type { Problem, ProblemShape } from '../../../problem/index.js';
import { lazily } from '../../../reuse.js';
import { createValueSums, keysAtOnce, type ValueSums } from './value-sums.js';
import { addWeighed, emptySums, type WeightedRow, type WeightedSums } from '../prediction.js';
import { sumShares, sumsOfCells, sumsOfRange, weightsOf, type ShareSums } from './relative-sums.js';

/** Numbers of the columns that are held: 32 MiB in fp64. */
const heldNumbers = 2 ** 22;

/** The largest divisor of a number of columns of which so many keys are not too much to hold. */
function widthOf(keys: number, vDim: number): number {
  let width = Math.max(1, Math.min(vDim, Math.floor(heldNumbers / Math.max(keys, 1))));
  while (vDim % width !== 0) width -= 1;
  return width;
}

/** What was made last, and of what. */
class Last<Made> {
  #last: { readonly of: object; readonly made: Made } | null = null;

  /** What `make` returns, or returned for the same object the last time. */
  of(object: object, make: () => Made): Made {
    if (this.#last?.of === object) return this.#last.made;
    const made = make();
    this.#last = { of: object, made };
    return made;
  }
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
  /** What is known of the correct weights that were asked for last. */
  readonly #ofHeld = new Last<ShareSums>();
  readonly #ofAll = new Last<WeightedSums>();
  readonly #sums: () => ValueSums;

  /** @param errors the errors of the output by column: those that err most are held */
  constructor(problem: Problem, shape: ProblemShape, errors: Float64Array) {
    this.#problem = problem;
    this.#shape = shape;
    this.#sums = lazily(() => createValueSums(shape.vDim));
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
    const { room } = this.#sums();
    this.#decode(kv, room, (firstKey, count) => {
      const { vDim } = this.#shape;
      for (let i = 0, to = firstKey * columns.length; i < count; i++)
        for (let c = 0; c < columns.length; c++) values[to++] = room[i * vDim + columns[c]];
    });
    this.#held = { kv, values };
    this.#heads.set(values, kv);
    return values;
  }

  /** The sums over the held columns for weights that are applied to what `held` returned. */
  heldSums({ weights, values, relative }: WeightedRow): WeightedSums {
    const vDim = this.columns.length;
    if (relative === undefined) {
      const sums = emptySums(vDim);
      addWeighed(sums, weights, values, vDim);
      return sums;
    }
    const ofShares = this.#ofHeld.of(relative.shares, () =>
      sumShares(relative.shares, values, vDim),
    );
    if (relative.cells !== null) return sumsOfCells(relative.cells, ofShares, vDim);
    const { begin, end } = relative.range ?? { begin: 0, end: 0 };
    return sumsOfRange(relative, ofShares.all, values.subarray(begin * vDim, end * vDim), vDim);
  }

  /** The same sums over all columns. */
  allSums({ weights, values, relative }: WeightedRow): WeightedSums {
    const kv = this.#heads.get(values);
    if (kv === undefined) throw new Error('these weights are not of the held columns of a head');
    if (relative === undefined) return this.#weigh(kv, weights);
    if (relative.cells !== null) return this.#weigh(kv, weightsOf(relative));
    const all = this.#ofAll.of(relative.shares, () => this.#weigh(kv, relative.shares));
    const { begin, end } = relative.range ?? { begin: 0, end: 0 };
    return sumsOfRange(relative, all, this.#rows(kv, begin, end), this.#shape.vDim);
  }

  /** Σ over all keys and columns. */
  #weigh(kv: number, weights: Float64Array): WeightedSums {
    const sums = this.#sums();
    sums.clear();
    this.#decode(kv, sums.room, (firstKey, count) =>
      sums.add(weights.subarray(firstKey, firstKey + count)),
    );
    return sums.sums();
  }

  /** V of some keys. */
  #rows(kv: number, begin: number, end: number): Float64Array {
    const { keys, vDim } = this.#shape;
    return decodeTensor(this.#problem.v, (kv * keys + begin) * vDim, (kv * keys + end) * vDim);
  }

  /** Decodes V of a head 64 rows at a time. */
  #decode(kv: number, room: Float64Array, take: (firstKey: number, count: number) => void): void {
    const { keys, vDim } = this.#shape;
    for (let key = 0; key < keys; key += keysAtOnce) {
      const count = Math.min(keysAtOnce, keys - key);
      const first = (kv * keys + key) * vDim;
      decodeTensor(this.#problem.v, first, first + count * vDim, room);
      take(key, count);
    }
  }
}
