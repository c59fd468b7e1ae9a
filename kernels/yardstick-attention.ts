import { decodeTensor, decodeToFloat64, encodeFromFloat64, formats } from '../src/formats/index.js';
import {
  countKeys,
  problemMask,
  type KeyRange,
  type Problem,
  type ProblemShape,
  type Tensor,
} from '../src/problem/index.js';
import { rowFeatures } from './naive/index.js';

/** Queries whose scores are held at once. */
const tileRows = 64;

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
  let loaded = -1;
  let k: Float64Array = new Float64Array();
  let v: Float64Array = new Float64Array();
  const load = (kv: number): void => {
    if (kv === loaded) return;
    k = decodeRows(problem.k, kv * keys, keys, qkDim);
    multiply(k, problem.scale);
    roundAll(k);
    v = decodeRows(problem.v, kv * keys, keys, vDim);
    loaded = kv;
  };
  const mask = problemMask(problem, shape);
  const featuresOf = rowFeatures(problem, shape);
  const isAdded = problem.bias !== undefined || problem.alibiSlopes !== undefined;
  const share = 1 - (problem.dropout?.probability ?? 0);
  /** The products of a row of Q with the keys of some ranges, into `scores`. */
  const score = (
    scores: Float64Array,
    q: Float64Array,
    row: number,
    ranges: readonly KeyRange[],
  ) => {
    let at = 0;
    for (const { begin, end } of ranges)
      for (let key = begin; key < end; key++)
        scores[at++] = dotProduct(q, row * qkDim, k, key * qkDim, qkDim);
  };
  const addValues = (row: Float64Array, weights: Float64Array, ranges: readonly KeyRange[]) => {
    let at = 0;
    for (const { begin, end } of ranges)
      addWeightedRows(row, weights.subarray(at, (at += end - begin)), v, begin);
  };
  const cap = (scores: Float64Array, limit: number): void => {
    divide(scores, limit);
    roundAll(scores);
    for (let j = 0; j < scores.length; j++) scores[j] = Math.tanh(scores[j]);
    roundAll(scores);
    multiply(scores, limit);
    roundAll(scores);
  };
  for (let head = 0; head < batch * heads; head++) {
    load(Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize));
    for (let first = 0; first < queries; first += tileRows) {
      const rows = Math.min(tileRows, queries - first);
      const row = head * queries + first;
      const q = decodeRows(problem.q, row, rows, qkDim);
      const ranges = Array.from({ length: rows }, (_, i) => mask.ranges(head, first + i));
      const counts = ranges.map(countKeys);
      // The visible scores of one row after the other.
      const scores = new Float64Array(counts.reduce((sum, count) => sum + count, 0));
      let at = 0;
      const ofRows = counts.map((count) => scores.subarray(at, (at += count)));
      ofRows.forEach((ofRow, i) => score(ofRow, q, i, ranges[i]));
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
      ofRows.forEach((weights, i) =>
        addValues(tile.subarray(i * vDim, (i + 1) * vDim), weights, ranges[i]),
      );
      roundAll(tile);
    }
  }
  return out;
}
