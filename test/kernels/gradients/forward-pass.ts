import { decodeTensor, type FormatName, type Tensor } from '../../../src/formats/index.js';
import {
  problemMask,
  type Mask,
  type Problem,
  type ProblemShape,
} from '../../../src/problem/index.js';
import { correctSteps, type BackwardSteps } from './backward-steps.js';
import { roundTo, type SumOrder } from './ordered-sums.js';

const { fround } = Math;

/** Which correct kernel it is. */
export interface BackwardOptions {
  /** Of the terms of all gradients; default `ascending`. */
  readonly order?: SumOrder;
  /** Whether dS is multiplied by the scale before it is rounded, and not dQ and dK at their end; default not. */
  readonly scalesFirst?: boolean;
  /** Whether D is Σ dO·O of the stored O (default), or Σ P dP. */
  readonly delta?: 'output' | 'weights';
  /** What P and dS are rounded to; default the format of Q, bf16 for 8 bits. */
  readonly factors?: FormatName;
  /** Of the order of atomic adds. */
  readonly seed?: number;
  /** Changes steps of the kernel on a problem; default none. */
  readonly change?: (
    steps: BackwardSteps,
    problem: Problem,
    shape: ProblemShape,
  ) => Partial<BackwardSteps>;
}

/** A head's scores, [queries, keys], seen or not, and the tanh under a softcap. */
export interface HeadScores {
  readonly scores: Float32Array;
  readonly tanh: Float32Array | null;
}

/** A kernel on one problem: what all its passes read. */
export interface Run {
  readonly problem: Problem;
  readonly shape: ProblemShape;
  readonly steps: BackwardSteps;
  readonly options: BackwardOptions;
  readonly q: Float32Array;
  readonly k: Float32Array;
  readonly v: Float32Array;
  readonly dout: Float32Array;
  /** What P and dS are rounded to; and O and the gradients. */
  readonly narrow: FormatName;
  readonly output: FormatName;
}

/** A tensor in fp32. */
export const decode = (tensor: Tensor) => Float32Array.from(decodeTensor(tensor));

/** Rows of A times rows of B, [rowsA, rowsB], each summed sequentially in fp32. */
export function products(
  [a, aRow]: readonly [Float32Array, number],
  [b, bRow]: readonly [Float32Array, number],
  [rows, columns, dim]: readonly [number, number, number],
): Float32Array {
  const all = new Float32Array(rows * columns);
  for (let row = 0, at = 0; row < rows; row++)
    for (let column = 0; column < columns; column++, at++) {
      const [i, j] = [(aRow + row) * dim, (bRow + column) * dim];
      let sum = 0;
      for (let c = 0; c < dim; c++) sum = fround(sum + a[i + c] * b[j + c]);
      all[at] = sum;
    }
  return all;
}

/** The scores of a head. */
export function headScores(
  { problem, shape, q, k }: Run,
  head: number,
  { addend, scoreScale: scale, kvHead }: Pick<BackwardSteps, 'addend' | 'scoreScale' | 'kvHead'>,
): HeadScores {
  const { queries, keys, qkDim } = shape;
  const { softcap } = problem;
  const kv = kvHead(head);
  const scores = products([q, head * queries], [k, kv * keys], [queries, keys, qkDim]);
  const tanh = softcap === null ? null : new Float32Array(scores.length);
  const added = new Float64Array(keys);
  for (let row = 0; row < queries; row++) {
    addend?.(head, row, 0, added);
    for (let key = 0, at = row * keys; key < keys; key++, at++) {
      scores[at] *= scale;
      if (tanh !== null && softcap !== null) {
        tanh[at] = Math.tanh(fround(scores[at] / fround(softcap)));
        scores[at] = fround(softcap) * tanh[at];
      }
      scores[at] += fround(added[key]);
    }
  }
  return { scores, tanh };
}

/** Writes 1 for the weights of a row that dropout keeps. */
export function keptOf(steps: BackwardSteps, head: number, row: number, keys: number): Uint8Array {
  const kept = new Uint8Array(keys).fill(1);
  steps.kept?.fill(head, row, 0, kept);
  return kept;
}

/** Visits the keys of ranges. */
export function eachSeen(ranges: ReturnType<Mask['ranges']>, visit: (key: number) => void): void {
  for (const { begin, end } of ranges) for (let key = begin; key < end; key++) visit(key);
}

/** The forward: O as stored, the LSE as it is asked for, and the logarithm of the row sum with the sink. */
export function forward(run: Run): Readonly<Record<'out' | 'lse' | 'logarithm', Float32Array>> {
  const { problem, shape, v, narrow } = run;
  const { batch, heads, queries, keys, vDim } = shape;
  const { ranges } = problemMask(problem, shape);
  const steps = correctSteps(problem, shape);
  const sinks = problem.sink === undefined ? null : decodeTensor(problem.sink.logits);
  const out = new Float32Array(batch * heads * queries * vDim);
  const lse = new Float32Array(batch * heads * queries).fill(-Infinity);
  const logarithm = lse.slice();
  for (let head = 0; head < batch * heads; head++) {
    const { scores } = headScores(run, head, steps);
    const sink = fround(sinks?.[head % heads] ?? -Infinity);
    const firstKey = steps.kvHead(head) * keys;
    for (let row = 0; row < queries; row++) {
      const seen: number[] = [];
      eachSeen(ranges(head, row), (key) => seen.push(key));
      const at = head * queries + row;
      const ofRow = seen.map((key) => scores[row * keys + key]);
      const max = ofRow.reduce((a, b) => Math.max(a, b), sink);
      if (max === -Infinity) continue;
      const weights = Float32Array.from(ofRow, (score) => Math.exp(fround(score - max)));
      const ofKeys = weights.reduce((a, b) => fround(a + b), 0);
      const sum = fround(ofKeys + fround(Math.exp(fround(sink - max))));
      logarithm[at] = max + fround(Math.log(sum));
      lse[at] = problem.sink?.inLse === false ? max + fround(Math.log(ofKeys)) : logarithm[at];
      const kept = keptOf(steps, head, row, keys);
      const rounded = roundTo(narrow, weights);
      const ofOut = out.subarray(at * vDim, (at + 1) * vDim);
      seen.forEach((key, j) => {
        const from = (firstKey + key) * vDim;
        const weight = kept[key] === 0 ? 0 : rounded[j];
        if (weight !== 0) for (let c = 0; c < vDim; c++) ofOut[c] += weight * v[from + c];
      });
      for (let c = 0; c < vDim; c++) ofOut[c] = fround(ofOut[c] / sum) * steps.upscale;
    }
  }
  return { out: roundTo(run.output, out), lse, logarithm };
}
