import {
  decodeTensor,
  decodeToFloat64,
  encodeFromFloat64,
  formats,
} from '../../src/formats/index.js';
import {
  countKeys,
  problemMask,
  type KeyRange,
  type Problem,
  type ProblemShape,
  type Tensor,
} from '../../src/problem/index.js';
import { rowFeatures } from '../row-features.js';

/** Queries whose scores are held at once, at most. */
const tileRows = 64;

/** Numbers that are held at once: scores of some rows, or a kv head's keys or values decoded, 16 MiB each. */
const heldNumbers = 2 ** 21;

/** Four partial sums, so that additions need not wait for one another. */
function dotProduct(
  a: Float64Array,
  aStart: number,
  b: Float64Array,
  bStart: number,
  length: number,
): number {
  let s0 = 0;
  let s1 = 0;
  let s2 = 0;
  let s3 = 0;
  const end = aStart + length;
  let i = aStart;
  let j = bStart;
  for (; i + 3 < end; i += 4, j += 4) {
    s0 += a[i] * b[j];
    s1 += a[i + 1] * b[j + 1];
    s2 += a[i + 2] * b[j + 2];
    s3 += a[i + 3] * b[j + 3];
  }
  for (; i < end; i++, j++) s0 += a[i] * b[j];
  return s0 + s1 + (s2 + s3);
}

/** Rows [first, first + rows) of a tensor with rows of `dim` elements, decoded. */
function decodeRows(tensor: Tensor, first: number, rows: number, dim: number): Float64Array {
  return decodeTensor(tensor, first * dim, (first + rows) * dim);
}

function multiply(values: Float64Array, factor: number): void {
  for (let i = 0; i < values.length; i++) values[i] *= factor;
}

function divide(values: Float64Array, divisor: number): void {
  for (let i = 0; i < values.length; i++) values[i] /= divisor;
}

/** How many of `count` rows of `width` numbers are held at once, one at least. */
function blockOf(count: number, width: number): number {
  return Math.max(1, Math.min(count, Math.floor(heldNumbers / Math.max(width, 1))));
}

/** A function of a block of rows that remembers its last answer. */
function remembered(of: (first: number, count: number) => Float64Array) {
  let known: { readonly first: number; readonly rows: Float64Array } | null = null;
  return (first: number, count: number): Float64Array => {
    if (known?.first !== first) known = { first, rows: of(first, count) };
    return known.rows;
  };
}

/** Scores of a row to its weights, e^(score − largest) / Σ e^(score − largest), in place; the sink is in the sum. */
function softmax(scores: Float64Array, sink: number): void {
  let largest = sink;
  for (let j = 0; j < scores.length; j++) if (scores[j] > largest) largest = scores[j];
  let total = sink === -Infinity ? 0 : Math.exp(sink - largest);
  for (let j = 0; j < scores.length; j++) {
    scores[j] = Math.exp(scores[j] - largest);
    total += scores[j];
  }
  divide(scores, total);
}

/** row += Σ_j weights[j] · values[first + j], four rows of values at a time. */
function addWeightedRows(
  row: Float64Array,
  weights: Float64Array,
  values: Float64Array,
  first: number,
): void {
  const dim = row.length;
  let j = 0;
  for (; j + 3 < weights.length; j += 4) {
    const w0 = weights[j];
    const w1 = weights[j + 1];
    const w2 = weights[j + 2];
    const w3 = weights[j + 3];
    let at0 = (first + j) * dim;
    let at1 = at0 + dim;
    let at2 = at1 + dim;
    let at3 = at2 + dim;
    for (let c = 0; c < dim; c++)
      row[c] += w0 * values[at0++] + w1 * values[at1++] + (w2 * values[at2++] + w3 * values[at3++]);
  }
  for (; j < weights.length; j++)
    for (let c = 0; c < dim; c++) row[c] += weights[j] * values[(first + j) * dim + c];
}

/**
 * The yardstick of FlashAttention's tests: attention in the input format, as they compute it
 * (`attention_ref` without upcast and with reordered operations): every tensor is rounded to the
 * format of Q, to nearest even: K·scale, the scores, the softcapped scores, those with a bias, the weights, the output;
 * sums are in fp64. A sink is in the sum of a row; dropout multiplies the weights by 0 or 1/(1 − p), which are not rounded again. Returns the output's values, [batch, heads, queries, vDim].
 */
export function yardstickAttention(problem: Problem, shape: ProblemShape): Float64Array {
  const { batch, heads, kvHeads, groupSize, queries, keys, qkDim, vDim } = shape;
  const { softcap } = problem;
  const format = formats[problem.q.format];
  const out = new Float64Array(batch * heads * queries * vDim);
  const roundAll = (values: Float64Array): void => {
    decodeToFloat64(encodeFromFloat64(format, values), format, values);
  };
  const blockKeys = blockOf(keys, Math.max(qkDim, vDim));
  const keyBlock = remembered((first, count) => {
    const k = decodeRows(problem.k, first, count, qkDim);
    multiply(k, problem.scale);
    roundAll(k);
    return k;
  });
  const valueBlock = remembered((first, count) => decodeRows(problem.v, first, count, vDim));
  const mask = problemMask(problem, shape);
  const featuresOf = rowFeatures(problem, shape);
  const isAdded = problem.bias !== undefined || problem.alibiSlopes !== undefined;
  const share = 1 - (problem.dropout?.probability ?? 0);
  /**
   * Visits what some rows see of one block of keys after the other: whose stretch of visible keys from `at` on has `count`
   * of them from key `from` of the block on.
   */
  const forEachStretch = (
    ranges: readonly (readonly KeyRange[])[],
    visit: (
      block: { readonly first: number; readonly count: number },
      row: number,
      at: number,
      stretch: { readonly from: number; readonly count: number },
    ) => void,
  ) => {
    const met = ranges.map(() => 0);
    for (let first = 0; first < keys; first += blockKeys) {
      const block = { first, count: Math.min(blockKeys, keys - first) };
      ranges.forEach((ofRow, row) => {
        for (const { begin, end } of ofRow) {
          const from = Math.max(begin, first);
          const count = Math.min(end, first + block.count) - from;
          if (count <= 0) continue;
          visit(block, row, met[row], { from: from - first, count });
          met[row] += count;
        }
      });
    }
  };
  /** The products of rows of Q with the keys that they see. */
  const score = (
    scores: readonly Float64Array[],
    q: Float64Array,
    ranges: readonly (readonly KeyRange[])[],
    firstKey: number,
  ) =>
    forEachStretch(ranges, ({ first, count }, row, at, stretch) => {
      const k = keyBlock(firstKey + first, count);
      for (let j = 0; j < stretch.count; j++)
        scores[row][at + j] = dotProduct(q, row * qkDim, k, (stretch.from + j) * qkDim, qkDim);
    });
  /** The sums of the values that rows see, times their weights, into rows of `tile`. */
  const addValues = (
    tile: Float64Array,
    weights: readonly Float64Array[],
    ranges: readonly (readonly KeyRange[])[],
    firstKey: number,
  ) =>
    forEachStretch(ranges, ({ first, count }, row, at, stretch) => {
      const v = valueBlock(firstKey + first, count);
      const ofRow = tile.subarray(row * vDim, (row + 1) * vDim);
      addWeightedRows(ofRow, weights[row].subarray(at, at + stretch.count), v, stretch.from);
    });
  const cap = (scores: Float64Array, limit: number): void => {
    divide(scores, limit);
    roundAll(scores);
    for (let j = 0; j < scores.length; j++) scores[j] = Math.tanh(scores[j]);
    roundAll(scores);
    multiply(scores, limit);
    roundAll(scores);
  };
  for (let head = 0; head < batch * heads; head++) {
    const kv = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
    for (let first = 0, rows = 0; first < queries; first += rows) {
      rows = Math.min(blockOf(tileRows, keys), queries - first);
      const row = head * queries + first;
      const q = decodeRows(problem.q, row, rows, qkDim);
      const ranges = Array.from({ length: rows }, (_, i) => mask.ranges(head, first + i));
      const counts = ranges.map(countKeys);
      // The visible scores of one row after the other.
      const scores = new Float64Array(counts.reduce((sum, count) => sum + count, 0));
      let at = 0;
      const ofRows = counts.map((count) => scores.subarray(at, (at += count)));
      score(ofRows, q, ranges, kv * keys);
      roundAll(scores);
      if (softcap !== null) cap(scores, softcap);
      const features = ofRows.map((_, i) => featuresOf(head, first + i));
      if (isAdded) {
        ofRows.forEach((ofRow, i) => features[i].addend?.forEach((x, j) => (ofRow[j] += x)));
        roundAll(scores);
      }
      ofRows.forEach((ofRow, i) => softmax(ofRow, features[i].sink));
      roundAll(scores);
      ofRows.forEach((ofRow, i) => features[i].kept?.forEach((x, j) => (ofRow[j] *= x / share)));
      const tile = out.subarray(row * vDim, (row + rows) * vDim);
      addValues(tile, ofRows, ranges, kv * keys);
      roundAll(tile);
    }
  }
  return out;
}
