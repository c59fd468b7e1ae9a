import {
  keptWeights,
  problemMask,
  scoreLaw,
  type KeptWeights,
  type Mask,
  type Problem,
  type ProblemShape,
  type ScoreAddend,
} from '../../../src/problem/index.js';
import type { Accumulator } from './ordered-sums.js';

/** The gradients that kernels give. */
export type GradientOf = 'dq' | 'dk' | 'dv';
/** Those of a bias and of sinks, which problems without these have not. */
export type SharedOf = 'dbias' | 'dsink';

/** A derivative by a score, and what it is made from. */
export interface ScoreDerivative {
  /** dS before the softcap's slope and the scale; and that slope. */
  readonly derivative: number;
  readonly slope: number;
}

/** What is summed to a gradient: P for dV, dS for dQ and dK, of one head, [queries, keys], rounded. */
export interface FactorMatrix {
  readonly of: GradientOf;
  readonly head: number;
  readonly values: Float32Array;
}

/** What a row of the backward is normalised by, [batch, heads, queries] each. */
export interface RowStatistics {
  /** Natural logarithm of the row sum, the sink's share included; −∞ where there is nothing. */
  readonly logarithm: Float32Array;
  /** D. */
  readonly delta: Float32Array;
}

/** What D can be made from. */
export interface DeltaInputs {
  /** As the forward stored it, and dO, [batch, heads, queries, vDim]. */
  readonly out: Float32Array;
  readonly dout: Float32Array;
}

/** What the backward's products read, decoded. */
export interface BackwardInputs {
  readonly q: Float32Array;
  readonly k: Float32Array;
  readonly v: Float32Array;
  readonly dout: Float32Array;
}

/** How the backward is computed; a fault replaces some of it. */
export interface BackwardSteps {
  /** What scores are multiplied by as P is made again. */
  readonly scoreScale: number;
  /** What products read of what there is; D is made of dO as it is. */
  readonly inputs: (own: BackwardInputs) => BackwardInputs;
  readonly ranges: Mask['ranges'];
  readonly addend: ScoreAddend | null;
  readonly kept: KeptWeights | null;
  /** What P is multiplied by where it is kept. */
  readonly upscale: number;
  /** Whether a row's dropout is applied to P, and to dP. */
  readonly dropsP: (head: number, query: number) => boolean;
  readonly dropsDp: (head: number, query: number) => boolean;
  /** The head of K and V that a head reads, both counted over the batch. */
  readonly kvHead: (head: number) => number;
  /** The row products of dO and O, in fp32. */
  readonly delta: (inputs: DeltaInputs) => Float32Array;
  /** What the backward reads of what was stored. */
  readonly read: (stored: RowStatistics) => RowStatistics;
  /** The derivative of the softcap from the tanh. */
  readonly slope: (tanh: number) => number;
  /** Factors as the products take them; may be changed in place. */
  readonly factors: (matrix: FactorMatrix, read: RowStatistics) => Float32Array;
  /** The query heads whose shares dK and dV of a head add, both counted over the batch. */
  readonly heads: (kvHead: number) => readonly number[];
  /** What each gradient is multiplied by at its end, where it is not before; 1 for dV. */
  readonly scales: Readonly<Record<GradientOf, number>>;
  /** What sums are rounded to after each addition. */
  readonly accumulators: Readonly<Record<GradientOf, Accumulator>>;
  /** What of a pair is added to the gradient of a bias. */
  readonly ofBias: (pair: ScoreDerivative) => number;
  /** The batch entry whose rows are added in the place of each to the gradients of biases and of sinks; null for none. */
  readonly entryOf: (of: SharedOf, batch: number) => number | null;
  /** A gradient before it is rounded and stored. */
  readonly stored: (of: GradientOf, values: Float32Array) => Float32Array;
  /** All of them behind that. */
  readonly afterwards: (all: GradientArrays) => GradientArrays;
}

/** Gradients in canonical shapes. */
export type GradientArrays = Readonly<Record<GradientOf, Float32Array>>;

const { fround } = Math;

/** D = Σ dO·O of each row over its first columns, sequentially in fp32. */
export function deltaOf(
  { out, dout }: DeltaInputs,
  vDim: number,
  columns = vDim,
): Float32Array<ArrayBuffer> {
  return new Float32Array(out.length / vDim).map((_, row) => {
    let sum = 0;
    for (let c = row * vDim; c < row * vDim + columns; c++) sum = fround(sum + out[c] * dout[c]);
    return sum;
  });
}

/** The steps of a correct kernel. */
export function correctSteps(problem: Problem, shape: ProblemShape): BackwardSteps {
  const { heads, kvHeads, groupSize, vDim } = shape;
  const kept = keptWeights(problem, shape);
  const scale = fround(problem.scale);
  return {
    scoreScale: scale,
    inputs: (own) => own,
    ranges: problemMask(problem, shape).ranges,
    addend: scoreLaw(problem, shape).addend,
    kept,
    upscale: kept === null ? 1 : fround(1 / kept.share),
    dropsP: () => true,
    dropsDp: () => true,
    kvHead: (head) => Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize),
    delta: (inputs) => deltaOf(inputs, vDim),
    read: (stored) => stored,
    slope: (tanh) => fround(1 - fround(tanh * tanh)),
    factors: ({ values }) => values,
    heads: (kvHead) => {
      const first = Math.floor(kvHead / kvHeads) * heads + (kvHead % kvHeads) * groupSize;
      return Array.from({ length: groupSize }, (_, i) => first + i);
    },
    scales: { dq: scale, dk: scale, dv: 1 },
    accumulators: { dq: { format: 'fp32' }, dk: { format: 'fp32' }, dv: { format: 'fp32' } },
    ofBias: ({ derivative }) => derivative,
    entryOf: (_, entry) => entry,
    stored: (_, values) => values,
    afterwards: (all) => all,
  };
}
