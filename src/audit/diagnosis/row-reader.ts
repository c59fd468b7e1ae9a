import { decodeTensor } from '../../formats/index.js';
import {
  keptWeights,
  problemMask,
  rowPlaces,
  scoreLaw,
  scoreOf,
  type KeptWeights,
  type KeyRange,
  type Mask,
  type Problem,
  type ProblemShape,
  type RowPlace,
  type ScoreLaw,
  type Tensor,
} from '../../problem/index.js';

/** Numbers of K or of V of a head from which on they are not held in fp64 as a whole: 128 MiB. */
const mostHeld = 2 ** 24;

/** Whether rows have so many keys that neither K nor V of a head is held as a whole. */
export function isLong({ keys, qkDim, vDim }: ProblemShape): boolean {
  return keys * Math.max(qkDim, vDim) > mostHeld;
}

/** Number of values that are kept per kind; a sample of rows reads few heads over and over. */
const keptValues = 2 ** 25;

/** Keeps the results of a function, by integer key, until they hold too many numbers; then starts over. */
function remembered(compute: (key: number) => Float64Array): (key: number) => Float64Array {
  const known = new Map<number, Float64Array>();
  let size = 0;
  return (key) => {
    const found = known.get(key);
    if (found !== undefined) return found;
    const values = compute(key);
    if (size + values.length > keptValues) {
      known.clear();
      size = 0;
    }
    size += values.length;
    known.set(key, values);
    return values;
  };
}

/** q·k with each of some keys, [keys × dim], terms added in the order of the dimensions. */
function productsWith(q: Float64Array, keys: Float64Array, count: number): Float64Array {
  const dim = q.length;
  const products = new Float64Array(count);
  let j = 0;
  // Four sums at once, since one would wait for each of its additions.
  for (; j + 4 <= count; j += 4) {
    let [a, b, c, d] = [0, 0, 0, 0];
    for (let t = 0, at = j * dim; t < dim; t++, at++) {
      const x = q[t];
      a += x * keys[at];
      b += x * keys[at + dim];
      c += x * keys[at + 2 * dim];
      d += x * keys[at + 3 * dim];
    }
    products[j] = a;
    products[j + 1] = b;
    products[j + 2] = c;
    products[j + 3] = d;
  }
  for (; j < count; j++) for (let t = 0; t < dim; t++) products[j] += q[t] * keys[j * dim + t];
  return products;
}

/** The parts of a reader that a reader of a changed problem takes over: q, k and v are the same. */
export type Operands = Pick<RowReader, 'keys' | 'values' | 'query' | 'dots'>;

/** Elements of K that are decoded at once where all of them are too many to be held: 1 MiB in fp64. */
const streamedElements = 2 ** 17;

/** q·k with each of the keys of a kv head, which are decoded some at a time. */
function streamedProducts(q: Float64Array, tensor: Tensor, first: number, keys: number) {
  const dim = q.length;
  const products = new Float64Array(keys);
  const atOnce = Math.max(4, Math.floor(streamedElements / dim / 4) * 4);
  const room = new Float64Array(atOnce * dim);
  for (let key = 0; key < keys; key += atOnce) {
    const count = Math.min(atOnce, keys - key);
    const begin = (first + key) * dim;
    decodeTensor(tensor, begin, begin + count * dim, room);
    products.set(productsWith(q, room, count), key);
  }
  return products;
}

/**
 * Single rows of a problem in plain fp64: one query with the keys and values of any kv head. Not an oracle:
 * sums carry no radius (relative error about 2^-50 of their magnitude). In a problem with a sink every row
 * has one more key behind the last, with the sink's logit for a score and zeros for a value.
 */
export class RowReader {
  readonly problem: Problem;
  readonly shape: ProblemShape;
  /** V of one flat kv head, [keys × vDim], and a row of zeros for a sink. */
  readonly values: (kv: number) => Float64Array;
  /** Scores of the visible keys of a flat row and of a sink, −∞ elsewhere; do not write to them. */
  readonly scores: (row: number) => Float64Array;
  /** K of one flat kv head, [keys × qkDim]. */
  readonly keys: (kv: number) => Float64Array;
  /** Q of a flat row. */
  readonly query: (row: number) => Float64Array;
  /** q·k of flat row `row` with every key of a flat kv head, masked or not; do not write to it. */
  readonly dots: (row: number, kv: number) => Float64Array;
  readonly #places: (head: number, query: number) => RowPlace;
  readonly #mask: Mask;
  readonly #law: ScoreLaw;
  readonly #kept: KeptWeights | null;
  /** The sinks by head of the batch; null without a sink. */
  readonly #sinks: Float64Array | null;

  constructor(problem: Problem, shape: ProblemShape, operands?: Operands) {
    const { batch, kvHeads, keys, qkDim, vDim } = shape;
    this.problem = problem;
    this.shape = shape;
    this.#places = rowPlaces(problem, shape);
    this.#mask = problemMask(problem, shape);
    this.#law = scoreLaw(problem, shape);
    this.#kept = keptWeights(problem, shape);
    const logits = problem.sink?.logits;
    this.#sinks = logits === undefined ? null : decodeTensor(logits);
    this.scores = remembered((row) => {
      const dots = this.dots(row, this.kvHead(row));
      return this.maskedScores(row, this.ranges(row), (key) => this.score(dots[key], row, key));
    });
    if (operands !== undefined) {
      this.keys = operands.keys;
      this.values = operands.values;
      this.query = operands.query;
      this.dots = operands.dots;
      return;
    }
    const slice = (tensor: Tensor, size: number) => (index: number) =>
      decodeTensor(tensor, index * size, (index + 1) * size);
    const values = slice(problem.v, keys * vDim);
    this.values = remembered((kv) => {
      if (this.#sinks === null) return values(kv);
      const longer = new Float64Array((keys + 1) * vDim);
      longer.set(values(kv));
      return longer;
    });
    this.keys = remembered(slice(problem.k, keys * qkDim));
    this.query = slice(problem.q, qkDim);
    const heads = Math.max(batch * kvHeads, 1);
    const dots = remembered((index) => {
      const q = this.query(Math.floor(index / heads));
      const kv = index % heads;
      if (isLong(shape)) return streamedProducts(q, problem.k, kv * keys, keys);
      return productsWith(q, this.keys(kv), keys);
    });
    this.dots = (row, kv) => dots(row * heads + kv);
  }

  /** The rows of another problem with the same q, k and v: other masks, score law, sink or dropout. */
  as(problem: Problem): RowReader {
    const hasOtherSink = (problem.sink === undefined) !== (this.problem.sink === undefined);
    return new RowReader(problem, this.shape, hasOtherSink ? undefined : this);
  }

  /** The logit of the sink of a flat row; −∞ without one. */
  sink(row: number): number {
    if (this.#sinks === null) return -Infinity;
    return this.#sinks[Math.floor(row / this.shape.queries) % this.shape.heads];
  }

  /**
   * The logarithm of the row sum, natural units, turned into the LSE that the problem asks for: without the sink where it is to
   * be left out.
   */
  reportedLse(row: number, logarithm: number): number {
    return this.#lseWithoutSink(row, logarithm) + (this.problem.lseShift?.values[row] ?? 0);
  }

  #lseWithoutSink(row: number, logarithm: number): number {
    if (this.problem.sink === undefined || this.problem.sink.inLse) return logarithm;
    const share = Math.exp(this.sink(row) - logarithm);
    return share >= 1 ? -Infinity : logarithm + Math.log1p(-share);
  }

  /** The values that the weights of a flat row are applied to: V of a flat kv head; with dropout the kept ones, divided. */
  valuesOf(row: number, kv: number): Float64Array {
    return this.keptOf(row, this.values(kv));
  }

  /** Values [keys × vDim] of a row after dropout: the kept ones, divided. */
  keptOf(row: number, values: Float64Array): Float64Array {
    if (this.#kept === null) return values;
    const { queries, keys, vDim } = this.shape;
    const kept = new Uint8Array(keys);
    this.#kept.fill(Math.floor(row / queries), row % queries, 0, kept);
    const { share } = this.#kept;
    return values.map((x, i) => (kept[Math.floor(i / vDim)] === 0 ? 0 : x / share));
  }

  /** The flat kv head of [batch, kv heads] that flat row `row` of [batch, heads, queries] reads. */
  kvHead(row: number): number {
    const { heads, kvHeads, groupSize, queries } = this.shape;
    const head = Math.floor(row / queries);
    return Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
  }

  /** The sequence that flat row `row` belongs to, and its place in it. */
  place(row: number): RowPlace {
    const { queries } = this.shape;
    return this.#places(Math.floor(row / queries), row % queries);
  }

  /** The keys that flat row `row` sees. */
  ranges(row: number): readonly KeyRange[] {
    const { queries } = this.shape;
    return this.#mask.ranges(Math.floor(row / queries), row % queries);
  }

  /** The scores of a flat row: those of the keys within some ranges and of a sink, −∞ elsewhere. */
  maskedScores(
    row: number,
    ranges: readonly KeyRange[],
    score: (key: number) => number,
  ): Float64Array {
    const { keys } = this.shape;
    const scores = new Float64Array(this.#sinks === null ? keys : keys + 1).fill(-Infinity);
    for (const { begin, end } of ranges)
      for (let key = begin; key < Math.min(end, keys); key++) scores[key] = score(key);
    if (this.#sinks !== null) scores[keys] = this.sink(row);
    return scores;
  }

  /** The scores of a flat row, as `scores` has them, with a factor on its dot products. */
  scoresTimes(row: number, factor: number): Float64Array {
    const { keys } = this.shape;
    const dots = this.dots(row, this.kvHead(row));
    const scores = new Float64Array(this.#sinks === null ? keys : keys + 1).fill(-Infinity);
    for (const { begin, end } of this.ranges(row))
      for (let key = begin; key < Math.min(end, keys); key++)
        scores[key] = this.score(factor * dots[key], row, key);
    if (this.#sinks !== null) scores[keys] = this.sink(row);
    return scores;
  }

  /** The score that the problem forms from a dot product of flat row `row` and a key; natural units. */
  score(dot: number, row: number, key: number): number {
    const { queries } = this.shape;
    return scoreOf(this.#law, dot, Math.floor(row / queries), row % queries, key);
  }
}
