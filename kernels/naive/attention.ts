import {
  encodeFromFloat32,
  formats,
  patternsOf,
  type FormatName,
} from '../../src/formats/index.js';
import { problemShape, type Problem, type ProblemShape } from '../../src/problem/index.js';
import type { KernelPiece } from '../kernel-model.js';
import { addScaledFloat32, logSumExpFloat32 } from './operations.js';
import { rowFeatures } from '../row-features.js';
import { createRowScores, decodedRows, exponentials, rounding } from './row-scores.js';

/** The naive kernel on one problem, a piece for each head. */
export interface NaiveAttention {
  readonly shape: ProblemShape;
  readonly outFormat: FormatName;
  readonly heads: number;
  readonly runHead: (head: number) => KernelPiece;
}

/**
 * The textbook kernel: a whole row of scores, its maximum, exponentials, their sum, the weights, their product with V. Every
 * operation is fp32 and rounds to nearest even, products and sums one by one in ascending order without contraction, exp,
 * tanh and log rounded from fp64. `intermediate` is the format that scores, scaled scores and weights are rounded to between
 * the passes, as in a framework that writes each of them to memory; fp32 leaves them unchanged. The output is rounded to the
 * format of Q. A query that sees no key gives 0 and −∞.
 *
 * Bias and ALiBi are rounded together to fp32, and added in one more pass. A sink, rounded to fp32, is one more score, the
 * last, that takes part in the maximum and the sum; where the LSE does not include it, the LSE comes from a maximum and a sum
 * without it. Dropout multiplies the weights by fp32's 1/(1 − p) before they are rounded to `intermediate`.
 */
export function createNaiveAttention(problem: Problem, intermediate: FormatName): NaiveAttention {
  const shape = problemShape(problem);
  const { batch, heads, kvHeads, groupSize, queries, keys, qkDim, vDim } = shape;
  const round = rounding(intermediate);
  const outFormat = problem.q.format;
  const scoresOf = createRowScores(problem, qkDim, round);
  const featuresOf = rowFeatures(problem, shape);
  const upscale = Math.fround(1 / (1 - (problem.dropout?.probability ?? 0)));
  const isSinkInLse = problem.sink?.inLse ?? false;

  function runHead(head: number): KernelPiece {
    const kv = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
    const q = decodedRows(problem.q, head * queries, queries, qkDim);
    const k = decodedRows(problem.k, kv * keys, keys, qkDim);
    const v = decodedRows(problem.v, kv * keys, keys, vDim);
    const out = new Float32Array(queries * vDim);
    const lse = new Float32Array(queries).fill(-Infinity);
    for (let row = 0; row < queries; row++) {
      const features = featuresOf(head, row);
      const { sink, kept } = features;
      if (features.keys.length === 0) {
        if (isSinkInLse) lse[row] = sink;
        continue;
      }
      const weights = scoresOf(q, row, k, features).scores;
      const alone = sink === -Infinity || isSinkInLse ? null : weights.slice();
      const { max, sum } = exponentials(weights, sink);
      for (let j = 0; j < weights.length; j++) {
        weights[j] /= sum;
        if (kept !== null) weights[j] *= kept[j] === 0 ? 0 : upscale;
      }
      round(weights);
      const sums = out.subarray(row * vDim, (row + 1) * vDim);
      features.keys.forEach((key, j) => addScaledFloat32(sums, weights[j], v, key * vDim));
      const ofLse = alone === null ? { max, sum } : exponentials(alone, -Infinity);
      lse[row] = logSumExpFloat32(ofLse.max, ofLse.sum);
    }
    const format = formats[outFormat];
    const patterns = patternsOf(encodeFromFloat32(format, out), format);
    return {
      firstRow: head * queries,
      rows: queries,
      out: patterns,
      lse,
      rescales: null,
      counters: {},
    };
  }

  return { shape, outFormat, heads: batch * heads, runHead };
}
