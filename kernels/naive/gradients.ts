import {
  encodeFromFloat32,
  formats,
  patternsOf,
  type FormatName,
  type Tensor,
} from '../../src/formats/index.js';
import { problemShape, type Problem, type ProblemShape } from '../../src/problem/index.js';
import {
  assembleBackwardPieces,
  checkBackwardInputs,
  type BackwardGradients,
} from '../backward/pieces.js';
import type { BackwardPiece, PreparedBackward } from '../backward/model.js';
import { addScaledFloat32, dotFloat32 } from './operations.js';
import { rowFeatures, type RowFeatures } from '../row-features.js';
import { createRowScores, decodedRows, exponentials, rounding } from './row-scores.js';

const { fround } = Math;

/** A head's operands, in fp32. */
interface HeadOperands {
  readonly q: Float32Array;
  readonly k: Float32Array;
  readonly v: Float32Array;
  readonly dout: Float32Array;
}

/** Factors by which a row multiplies rows of K, Q and dO, [keys seen]. */
interface RowFactors {
  /** The derivatives of the products q·k. */
  readonly products: Float32Array;
  /** The weights that dropout keeps. */
  readonly weights: Float32Array;
}

/** Makes the factors of rows. */
function createRowFactors(
  problem: Problem,
  { qkDim, vDim }: ProblemShape,
  round: (values: Float32Array) => Float32Array,
): (operands: HeadOperands, row: number, features: RowFeatures) => RowFactors {
  const scoresOf = createRowScores(problem, qkDim, round);
  const scale = fround(problem.scale);
  const upscale = fround(1 / (1 - (problem.dropout?.probability ?? 0)));
  const cap = problem.softcap === null ? null : fround(problem.softcap);

  /** Multiplies the values that dropout keeps by 1/(1 − p), in place; the rest becomes 0. */
  const drop = (values: Float32Array, kept: Uint8Array | null) => {
    if (kept === null) return values;
    for (let j = 0; j < values.length; j++) values[j] = kept[j] === 0 ? 0 : values[j] * upscale;
    return round(values);
  };

  return ({ q, k, v, dout }, row, features) => {
    const { keys, kept, sink } = features;
    const { scores: weights, uncapped } = scoresOf(q, row, k, features);
    const { sum } = exponentials(weights, sink);
    for (let j = 0; j < weights.length; j++) weights[j] /= sum;
    const dropped = kept === null ? null : drop(weights.slice(), kept);
    round(weights);
    const derivatives = Float32Array.from(keys, (key) =>
      dotFloat32(dout, row * vDim, v, key * vDim, vDim),
    );
    drop(round(derivatives), kept);
    let mean = 0;
    for (let j = 0; j < weights.length; j++)
      mean = fround(mean + fround(derivatives[j] * weights[j]));
    for (let j = 0; j < weights.length; j++)
      derivatives[j] = fround(derivatives[j] - mean) * weights[j];
    round(derivatives);
    if (uncapped !== null && cap !== null) {
      for (let j = 0; j < derivatives.length; j++) {
        const tanh = fround(Math.tanh(fround(uncapped[j] / cap)));
        derivatives[j] *= fround(1 - fround(tanh * tanh));
      }
      round(derivatives);
    }
    for (let j = 0; j < derivatives.length; j++) derivatives[j] *= scale;
    return { products: round(derivatives), weights: dropped ?? weights };
  };
}

/** The textbook kernel's gradients of one key/value head at a time. */
export interface NaiveBackward extends Pick<PreparedBackward, 'shape' | 'format'> {
  /** @param kvHead counted over batch · kv heads */
  readonly run: (kvHead: number) => Omit<BackwardPiece, 'counters'>;
}

/**
 * The textbook kernel's backward: the automatic derivative of `createNaiveAttention`, pass by pass, each a whole row in fp32 that is rounded to
 * `intermediate` as it is written: dP = dO Vᵀ, dropout, D = Σ P dP and dS = (dP − D) P from the rounded P, the softcap's slope, the scale, and
 * then dQ, dK and dV. Products and sums are rounded one by one to fp32 in ascending order of keys or queries; a query head's dK and dV are
 * rounded to `intermediate` before the heads of a group are added in fp32. PyTorch's "math" backend is this with fp32 between the passes, but
 * for orders of sums. Gradients have the format of Q.
 * @param dout the gradient of O, [batch, heads, queries, vDim]; of rank 3 for a batch of one
 * @throws RequestError as `problemShape`, for a sample of rows, and for a dO that is not of O's shape
 */
export function createNaiveBackward(
  problem: Problem,
  dout: Tensor,
  intermediate: FormatName,
): NaiveBackward {
  const shape = problemShape(problem);
  const { heads, kvHeads, groupSize, queries, keys, qkDim, vDim } = shape;
  checkBackwardInputs(problem, dout);
  const format = formats[problem.q.format];
  const round = rounding(intermediate);
  const featuresOf = rowFeatures(problem, shape);
  const factorsOf = createRowFactors(problem, shape, round);
  const row = (of: Float32Array, at: number, dim: number) => of.subarray(at * dim, (at + 1) * dim);

  const run = (kvHead: number) => {
    const dq = new Float32Array(groupSize * queries * qkDim);
    const dk = new Float32Array(keys * qkDim);
    const dv = new Float32Array(keys * vDim);
    const join = (group: Float32Array, share: Float32Array) =>
      round(share).forEach((x, i) => (group[i] += x));
    const firstHead = Math.floor(kvHead / kvHeads) * heads + (kvHead % kvHeads) * groupSize;
    for (let member = 0; member < groupSize; member++) {
      const head = firstHead + member;
      const operands = {
        q: decodedRows(problem.q, head * queries, queries, qkDim),
        k: decodedRows(problem.k, kvHead * keys, keys, qkDim),
        v: decodedRows(problem.v, kvHead * keys, keys, vDim),
        dout: decodedRows(dout, head * queries, queries, vDim),
      };
      const ofKeys = new Float32Array(keys * qkDim);
      const ofValues = new Float32Array(keys * vDim);
      for (let query = 0; query < queries; query++) {
        const features = featuresOf(head, query);
        if (features.keys.length === 0) continue;
        const { products, weights } = factorsOf(operands, query, features);
        const ofQuery = row(dq, member * queries + query, qkDim);
        features.keys.forEach((key, j) => {
          addScaledFloat32(ofQuery, products[j], operands.k, key * qkDim);
          addScaledFloat32(row(ofKeys, key, qkDim), products[j], operands.q, query * qkDim);
          addScaledFloat32(row(ofValues, key, vDim), weights[j], operands.dout, query * vDim);
        });
      }
      join(dk, ofKeys);
      join(dv, ofValues);
    }
    const patterns = (values: Float32Array) =>
      patternsOf(encodeFromFloat32(format, values), format);
    return { kvHead, dq: patterns(dq), dk: patterns(dk), dv: patterns(dv) };
  };
  return { shape, format: format.name, run };
}

/**
 * The gradients of a whole problem by the textbook kernel's backward: the automatic derivative of
 * `createNaiveAttention`, each pass rounded to `intermediate` as it is written, products and sums one by one to fp32 in
 * ascending order. They have the format of Q.
 * @param dout the gradient of O, [batch, heads, queries, vDim]; of rank 3 for a batch of one
 * @throws RequestError as `problemShape`, for a sample of rows, and for a dO that is not of O's shape
 */
export function naiveGradients(
  problem: Problem,
  dout: Tensor,
  intermediate: FormatName,
): BackwardGradients {
  const backward = createNaiveBackward(problem, dout, intermediate);
  const assembly = assembleBackwardPieces(problem, backward);
  const { batch, kvHeads } = backward.shape;
  for (let kvHead = 0; kvHead < batch * kvHeads; kvHead++)
    assembly.add({ ...backward.run(kvHead), counters: {} });
  return assembly.results();
}
