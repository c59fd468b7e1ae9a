import { decodeTensor } from '../../formats/index.js';
import {
  problemMask,
  scoreLaw,
  scoreOf,
  type KeyRange,
  type Mask,
  type Problem,
  type ProblemShape,
  type ScoreLaw,
  type Tensor,
} from '../../problem/index.js';

/** How many values are kept per kind; a sample of rows reads few heads over and over. */
const keptValues = 2 ** 25;

/** Keeps what a function gave, by integer key, until it holds too many numbers; then starts over. */
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

/**
 * Single rows of a problem in plain fp64: what one query makes of the keys and values of any kv head.
 * Not an oracle: sums carry no radius (relative error about 2^-50 of their magnitude).
 */
export class RowReader {
  readonly problem: Problem;
  readonly shape: ProblemShape;
  /** V of one flat kv head, [keys × vDim]. */
  readonly values: (kv: number) => Float64Array;
  /** Scores of the visible keys of a flat row, −∞ elsewhere; do not write to them. */
  readonly scores: (row: number) => Float64Array;
  /** K of one flat kv head, [keys × qkDim]. */
  readonly keys: (kv: number) => Float64Array;
  /** Q of a flat row. */
  readonly query: (row: number) => Float64Array;
  readonly #dots: (index: number) => Float64Array;
  readonly #kvHeads: number;
  readonly #mask: Mask;
  readonly #law: ScoreLaw;

  constructor(problem: Problem, shape: ProblemShape) {
    const { batch, kvHeads, keys, qkDim, vDim } = shape;
    this.problem = problem;
    this.shape = shape;
    this.#kvHeads = Math.max(batch * kvHeads, 1);
    this.#mask = problemMask(problem, shape);
    this.#law = scoreLaw(problem);
    const slice = (tensor: Tensor, size: number) => (index: number) =>
      decodeTensor(tensor, index * size, (index + 1) * size);
    this.values = remembered(slice(problem.v, keys * vDim));
    this.keys = remembered(slice(problem.k, keys * qkDim));
    this.query = slice(problem.q, qkDim);
    this.scores = remembered((row) => {
      const dots = this.dots(row, this.kvHead(row));
      return this.maskedScores(this.ranges(row), (key) => this.score(dots[key], row, key));
    });
    this.#dots = remembered((index) => {
      const q = this.query(Math.floor(index / this.#kvHeads));
      const k = this.keys(index % this.#kvHeads);
      return Float64Array.from({ length: keys }, (_, j) => {
        let sum = 0;
        for (let t = 0; t < qkDim; t++) sum += q[t] * k[j * qkDim + t];
        return sum;
      });
    });
  }

  /** The flat kv head of [batch, kv heads] that flat row `row` of [batch, heads, queries] reads. */
  kvHead(row: number): number {
    const { heads, kvHeads, groupSize, queries } = this.shape;
    const head = Math.floor(row / queries);
    return Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
  }

  /** The keys that flat row `row` sees. */
  ranges(row: number): readonly KeyRange[] {
    const { queries } = this.shape;
    return this.#mask.ranges(Math.floor(row / queries), row % queries);
  }

  /** The scores of all keys: those of the keys within some ranges, −∞ elsewhere. */
  maskedScores(ranges: readonly KeyRange[], score: (key: number) => number): Float64Array {
    const scores = new Float64Array(this.shape.keys).fill(-Infinity);
    for (const { begin, end } of ranges)
      for (let key = begin; key < Math.min(end, scores.length); key++) scores[key] = score(key);
    return scores;
  }

  /** q·k of row `row` with every key of a flat kv head, masked or not; do not write to it. */
  dots(row: number, kv: number): Float64Array {
    return this.#dots(row * this.#kvHeads + kv);
  }

  /** The score that the problem makes of a dot product of flat row `row` and a key; natural units. */
  score(dot: number, row: number, key: number): number {
    const { queries } = this.shape;
    return scoreOf(this.#law, dot, Math.floor(row / queries), row % queries, key);
  }
}
