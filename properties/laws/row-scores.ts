import { decodeToFloat64, formats, unitRoundoff } from '../../src/formats/index.js';
import {
  keysOf,
  problemMask,
  problemShape,
  scoreLaw,
  scoreOf,
  type Problem,
} from '../../src/problem/index.js';

/** The scores of a row, of the keys that it sees. */
export interface RowScores {
  /** Over [batch, heads, queries]. */
  readonly row: number;
  /** Over [batch, kv heads]. */
  readonly kvHead: number;
  /** The keys that it sees, ascending. */
  readonly visible: Int32Array;
  /** Natural units, scale and softcap applied, fp64. */
  readonly scores: Float64Array;
  /** By how much a correct kernel's scores may differ. */
  readonly radii: Float64Array;
}

/** Roundings of a score that a kernel may do in the format of the inputs: the product, scaled, capped. */
const inputRoundings = 4;

/**
 * The scores of every row, about as exact as fp64, with a generous radius of what a correct kernel's
 * may be: products summed in fp32 in any order, and the result rounded to the inputs' format at every
 * step. One row after the other, in the same memory. NaN and ∞ are what they make in fp64.
 */
export function* rowScores(problem: Problem): Generator<RowScores> {
  const shape = problemShape(problem);
  const { batch, heads, kvHeads, groupSize, queries, keys, qkDim } = shape;
  const { q, k, scale, softcap } = problem;
  const queryValues = decodeToFloat64(q.data, formats[q.format]);
  const keyValues = decodeToFloat64(k.data, formats[k.format]);
  const coarse = inputRoundings * unitRoundoff(formats[q.format]);
  const relative = coarse + (qkDim + 4) * 2 * unitRoundoff(formats.fp32);
  const scores = new Float64Array(keys);
  const radii = new Float64Array(keys);
  const visible = new Int32Array(keys);
  const mask = problemMask(problem, shape);
  const law = scoreLaw(problem);
  for (let row = 0; row < batch * heads * queries; row++) {
    const head = Math.floor(row / queries);
    const kvHead = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
    let seen = 0;
    for (const key of keysOf(mask.ranges(head, row % queries))) {
      let sum = 0;
      let magnitude = 0;
      for (let t = 0; t < qkDim; t++) {
        const product = queryValues[row * qkDim + t] * keyValues[(kvHead * keys + key) * qkDim + t];
        sum += product;
        magnitude += Math.abs(product);
      }
      scores[seen] = scoreOf(law, sum, head, row % queries, key);
      radii[seen] =
        relative * magnitude * Math.abs(scale) + (softcap === null ? 0 : coarse * softcap);
      visible[seen++] = key;
    }
    yield {
      row,
      kvHead,
      visible: visible.subarray(0, seen),
      scores: scores.subarray(0, seen),
      radii: radii.subarray(0, seen),
    };
  }
}
