import { decodeTensor } from '../../../../formats/index.js';
import {
  keptWeights,
  problemMask,
  scoreLaw,
  type KeptWeights,
  type KeyRange,
  type Mask,
  type Problem,
  type ScoreLaw,
  type Tensor,
} from '../../../../problem/index.js';
import type { MeasuredGradients } from '../../measure-gradients.js';

/** The changes of a faulty backward pass; it does right what is left out. */
export interface BackwardChange {
  /** The keys that it sees. */
  readonly ranges?: Mask['ranges'];
  /** Its score law; and the scale of dQ and dK, where that is not the law's. */
  readonly law?: ScoreLaw;
  readonly outerScale?: number;
  /**
   * [batch, heads, queries] each: the natural logarithm of the row sum, and D; `scores` for that of the pass's own scores, `weights`
   * for D from its own P and dP.
   */
  readonly logarithm?: ArrayLike<number> | 'scores';
  readonly delta?: ArrayLike<number> | 'weights';
  /** The sizes that D is a sum of. */
  readonly deltaSizes?: ArrayLike<number>;
  /** The power of the softcap's derivative in dS. */
  readonly slopePower?: number;
  /** The factors of dropout for P in dV, and for dP. */
  readonly keptOfP?: WeightFactors;
  readonly keptOfDp?: WeightFactors;
  /** Decoded, in the shapes of the problem. */
  readonly operands?: Partial<BackwardOperands>;
  /** The head of K and V that a head reads, and that its dK and dV are added to, all counted over the batch. */
  readonly kvHead?: (head: number) => number;
  readonly addedTo?: (head: number) => number;
  /** The row of a gradient, counted over [batch, heads], that a row of it is written to, and the reverse. */
  readonly written?: Partial<Record<'dq' | 'dk' | 'dv', WrittenRows>>;
}

/** Rows of a gradient that are written in the place of others. */
export interface WrittenRows {
  readonly to: (row: number) => number;
  readonly from: (row: number) => number;
}

/** Writes a factor for every key of a head, counted over [batch, heads]; null for 1 everywhere. */
export type WeightFactors = ((head: number, query: number, target: Float64Array) => void) | null;

/** Decoded inputs of a backward pass. */
export interface BackwardOperands {
  readonly q: Float64Array;
  readonly k: Float64Array;
  readonly v: Float64Array;
  readonly dout: Float64Array;
}

/** P·kept/(1 − p) of dV and dS of dQ and dK, over the keys of a head; outside of the ranges they are not written. */
export interface BackwardRow {
  /** The first row of K and V that is read. */
  readonly firstKey: number;
  readonly ranges: readonly KeyRange[];
  readonly weights: Float64Array;
  readonly scores: Float64Array;
  /** P(|dP| + Σ P|dP|), which roundings of dP and D are relative to. */
  readonly sizes: Float64Array;
}

/** The factors of dropout in use: 0 where a weight is dropped, `scale` where it is kept. */
export function factorsOfKept(kept: KeptWeights | null, scale?: number): WeightFactors {
  if (kept === null) return null;
  const factor = scale ?? 1 / kept.share;
  return (head, query, target) => {
    const row = new Uint8Array(target.length);
    kept.fill(head, query, 0, row);
    for (let key = 0; key < row.length; key++) target[key] = row[key] === 0 ? 0 : factor;
  };
}

/** Decoded inputs of the backward pass of a problem. */
export function backwardOperands({ q, k, v }: Problem, dout: Tensor): BackwardOperands {
  return { q: decodeTensor(q), k: decodeTensor(k), v: decodeTensor(v), dout: decodeTensor(dout) };
}

function product(a: Float64Array, at: number, b: Float64Array, from: number, size: number): number {
  let sum = 0;
  for (let c = 0; c < size; c++) sum += a[at + c] * b[from + c];
  return sum;
}

/**
 * The rows of P and dS of a backward pass with a fault, in fp64, one after the other: the next call overwrites the
 * arrays that a call returns. Without a fault they are exact up to roundings of fp64.
 * @returns the row of a query of a head, counted over [batch, heads]
 */
export function backwardRows(
  problem: Problem,
  measured: Pick<MeasuredGradients, 'shape' | 'reference' | 'mean'>,
  operands: BackwardOperands,
  change: BackwardChange,
): (head: number, query: number) => BackwardRow {
  const { shape, reference, mean } = measured;
  const { groupSize, queries, keys, qkDim, vDim } = shape;
  const { q, k, v, dout } = { ...operands, ...change.operands };
  const usual = factorsOfKept(keptWeights(problem, shape));
  const {
    ranges = problemMask(problem, shape).ranges,
    law: { scale, softcap, addend } = scoreLaw(problem, shape),
    logarithm = reference.denominator,
    delta = mean.values,
    deltaSizes = mean.magnitude,
    slopePower = 1,
    keptOfP = usual,
    keptOfDp = usual,
    kvHead = (head: number) => Math.floor(head / groupSize),
  } = change;
  const isOwn = delta === 'weights';
  const numbers = () => new Float64Array(keys);
  const [weights, scores, sizes] = [numbers(), numbers(), numbers()];
  const [added, derivatives] = [numbers(), numbers()];
  const [ofP, ofDp] = [numbers().fill(1), numbers().fill(1)];
  const sinks = problem.sink === undefined ? null : decodeTensor(problem.sink.logits);
  const scoreOf = (row: number, at: number, key: number) => {
    const scaled = scale * product(q, row * qkDim, k, at * qkDim, qkDim);
    const tanh = softcap === null ? 0 : Math.tanh(scaled / softcap);
    return { score: (softcap === null ? scaled : softcap * tanh) + added[key], tanh };
  };
  /** The logarithm of the sum of a row's own weights. */
  const ownLogarithm = (row: number, firstKey: number, seen: readonly KeyRange[]): number => {
    const all = sinks === null ? [] : [sinks[Math.floor(row / queries) % shape.heads]];
    for (const { begin, end } of seen)
      for (let key = begin; key < end; key++) all.push(scoreOf(row, firstKey + key, key).score);
    const most = all.reduce((a, b) => Math.max(a, b), -Infinity);
    return most + Math.log(all.reduce((sum, x) => sum + Math.exp(x - most), 0));
  };
  return (head, query) => {
    const row = head * queries + query;
    const firstKey = kvHead(head) * keys;
    const seen = ranges(head, query);
    if (seen.length > 0) {
      addend?.(head, query, 0, added);
      keptOfP?.(head, query, ofP);
      keptOfDp?.(head, query, ofDp);
    }
    const sum = logarithm === 'scores' ? ownLogarithm(row, firstKey, seen) : logarithm[row];
    let own = 0;
    for (const { begin, end } of seen)
      for (let key = begin; key < end; key++) {
        const at = firstKey + key;
        const { score, tanh } = scoreOf(row, at, key);
        const weight = Math.exp(score - sum);
        const slope = softcap === null ? 1 : (1 - tanh * tanh) ** slopePower;
        derivatives[key] = ofDp[key] * product(dout, row * vDim, v, at * vDim, vDim);
        own += weight * derivatives[key];
        weights[key] = weight * ofP[key];
        scores[key] = weight * slope;
      }
    const mean = isOwn ? own : delta[row];
    const size = Math.max(Math.abs(mean), deltaSizes[row]);
    for (const { begin, end } of seen)
      for (let key = begin; key < end; key++) {
        sizes[key] = scores[key] * (Math.abs(derivatives[key]) + size);
        scores[key] *= derivatives[key] - mean;
      }
    return { firstKey, ranges: seen, weights, scores, sizes };
  };
}
