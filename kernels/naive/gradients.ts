import {
  encodeFromFloat32,
  formats,
  type FormatName,
  type Tensor,
} from '../../src/formats/index.js';
import { problemShape, type Problem, type ProblemShape } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import { addScaledFloat32, dotFloat32 } from './operations.js';
import { rowFeatures, type RowFeatures } from '../row-features.js';
import { createRowScores, decodedRows, exponentials, rounding } from './row-scores.js';

const { fround } = Math;

/** Gradients in the format of Q. */
export interface NaiveGradients {
  /** [batch, heads, queries, qkDim] */
  readonly dq: Tensor;
  /** [batch, kv heads, keys, qkDim] and [batch, kv heads, keys, vDim] */
  readonly dk: Tensor;
  readonly dv: Tensor;
}

/** A head's operands, in fp32. */
interface HeadOperands {
  readonly q: Float32Array;
  readonly k: Float32Array;
  readonly v: Float32Array;
  readonly dout: Float32Array;
}

/** What a row multiplies rows of K, Q and dO by, [keys seen]. */
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

  /** Multiplies by 1/(1 − p) what dropout keeps, in place; the rest becomes 0. */
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

/**
 * The textbook kernel's backward: what automatic differentiation makes of `createNaiveAttention`, pass by pass, each a whole row in
 * fp32 that is rounded to `intermediate` as it is written: dP = dO Vᵀ, dropout, D = Σ P dP and dS = (dP − D) P from
 * the rounded P, the softcap's slope, the scale, and then dQ, dK and dV. Products and sums are rounded one by one to fp32 in ascending order of
 * keys or queries; a query head's dK and dV are rounded to `intermediate` before the heads of a group are added in
 * fp32. PyTorch's "math" backend is this with fp32 between the passes, but for orders of sums.
 * @param dout the gradient of O, [batch, heads, queries, vDim]; of rank 3 for a batch of one
 * @throws RequestError as `problemShape`, for a sample of rows, and for a dO that is not of O's shape
 */
export function naiveGradients(
  problem: Problem,
  dout: Tensor,
  intermediate: FormatName,
): NaiveGradients {
  const shape = problemShape(problem);
  const { batch, heads, kvHeads, groupSize, queries, keys, qkDim, vDim } = shape;
  if (problem.rows !== undefined)
    throw new RequestError('dK and dV add all rows, and these are a sample; give them all');
  const ofOutput = [batch, heads, queries, vDim];
  if (String(dout.shape.length === 3 ? [1, ...dout.shape] : dout.shape) !== String(ofOutput))
    throw new RequestError(
      `dout has shape [${dout.shape.join(', ')}]; give it that of the output, [${ofOutput.join(', ')}]`,
    );
  const round = rounding(intermediate);
  const featuresOf = rowFeatures(problem, shape);
  const factorsOf = createRowFactors(problem, shape, round);
  const dq = new Float32Array(batch * heads * queries * qkDim);
  const dk = new Float32Array(batch * kvHeads * keys * qkDim);
  const dv = new Float32Array(batch * kvHeads * keys * vDim);
  const row = (of: Float32Array, at: number, dim: number) => of.subarray(at * dim, (at + 1) * dim);
  for (let head = 0; head < batch * heads; head++) {
    const kv = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
    const operands = {
      q: decodedRows(problem.q, head * queries, queries, qkDim),
      k: decodedRows(problem.k, kv * keys, keys, qkDim),
      v: decodedRows(problem.v, kv * keys, keys, vDim),
      dout: decodedRows(dout, head * queries, queries, vDim),
    };
    const ofKeys = new Float32Array(keys * qkDim);
    const ofValues = new Float32Array(keys * vDim);
    for (let query = 0; query < queries; query++) {
      const features = featuresOf(head, query);
      if (features.keys.length === 0) continue;
      const { products, weights } = factorsOf(operands, query, features);
      const ofQuery = row(dq, head * queries + query, qkDim);
      features.keys.forEach((key, j) => {
        addScaledFloat32(ofQuery, products[j], operands.k, key * qkDim);
        addScaledFloat32(row(ofKeys, key, qkDim), products[j], operands.q, query * qkDim);
        addScaledFloat32(row(ofValues, key, vDim), weights[j], operands.dout, query * vDim);
      });
    }
    const join = (group: Float32Array, share: Float32Array) =>
      round(share).forEach((x, i) => (group[kv * share.length + i] += x));
    join(dk, ofKeys);
    join(dv, ofValues);
  }
  const format = formats[problem.q.format];
  const tensor = (values: Float32Array, ofTensor: readonly number[]): Tensor => ({
    format: format.name,
    shape: ofTensor,
    data: encodeFromFloat32(format, values),
  });
  return {
    dq: tensor(dq, [batch, heads, queries, qkDim]),
    dk: tensor(dk, [batch, kvHeads, keys, qkDim]),
    dv: tensor(dv, [batch, kvHeads, keys, vDim]),
  };
}
