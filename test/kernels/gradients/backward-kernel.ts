import {
  encodeFromFloat64,
  formats,
  type FormatName,
  type Tensor,
} from '../../../src/formats/index.js';
import { problemShape, type Problem } from '../../../src/problem/index.js';
import {
  correctSteps,
  type BackwardSteps,
  type GradientOf,
  type SharedOf,
} from './backward-steps.js';
import {
  decode,
  eachSeen,
  forward,
  headScores,
  keptOf,
  products,
  type BackwardOptions,
  type Run,
} from './forward-pass.js';
import { orderedSums, roundTo, type SumTerms } from './ordered-sums.js';
import { sharedGradients } from './shared-sums.js';

const { fround } = Math;

/** What a kernel gives forwards and backwards, in canonical shapes. */
export type BackwardOutputs = Readonly<Record<'out' | 'lse' | GradientOf, Tensor>> &
  Readonly<Partial<Record<SharedOf, Tensor>>>;

/** P for dV, dS for dQ and dK, of every head, rounded; dS for the bias and for the sinks, in fp32. */
interface Factors extends Readonly<Record<GradientOf, Float32Array[]>> {
  /** [queries × keys] of every head. */
  readonly bias: Float32Array[];
  /** [queries] of every head. */
  readonly sink: Float32Array[];
}

/** A kernel: a problem and the gradient of its output, [batch, heads, queries, vDim], to all outputs. */
export type BackwardKernel = (problem: Problem, dout: Tensor) => BackwardOutputs;

/** What the gradients are summed from. */
function factorsOf(run: Run, read: ReturnType<BackwardSteps['read']>): Factors {
  const { problem, shape, steps, options, v, dout, narrow } = run;
  const { batch, heads, queries, keys, vDim } = shape;
  const all: Factors = { dq: [], dk: [], dv: [], bias: [], sink: [] };
  const sinks = problem.sink === undefined ? null : decode(problem.sink.logits);
  const first = options.scalesFirst === true ? fround(problem.scale) : 1;
  for (let head = 0; head < batch * heads; head++) {
    const { scores, tanh } = headScores(run, head, steps);
    const kv = steps.kvHead(head);
    const dp = products([dout, head * queries], [v, kv * keys], [queries, keys, vDim]);
    const [p, ds, ofBias] = [0, 1, 2].map(() => new Float32Array(scores.length));
    const ofSink = new Float32Array(queries);
    for (let row = 0; row < queries; row++) {
      const at = head * queries + row;
      const kept = keptOf(steps, head, row, keys);
      const seen: number[] = [];
      eachSeen(steps.ranges(head, row), (key) => seen.push(row * keys + key));
      const weights = seen.map((i) => fround(Math.exp(fround(scores[i] - read.logarithm[at]))));
      const factor = (i: number) => (kept[i - row * keys] === 0 ? 0 : steps.upscale);
      const ofDp = steps.dropsDp(head, row) ? factor : () => 1;
      const ofP = steps.dropsP(head, row) ? factor : () => 1;
      const derivatives = seen.map((i) => fround(dp[i] * ofDp(i)));
      const ofWeights = () =>
        derivatives.reduce((sum, x, j) => fround(sum + fround(weights[j] * x)), 0);
      const delta = options.delta === 'weights' ? ofWeights() : read.delta[at];
      if (sinks !== null && seen.length > 0)
        ofSink[row] = -fround(Math.exp(fround(sinks[head % heads] - read.logarithm[at]))) * delta;
      seen.forEach((i, j) => {
        p[i] = weights[j] * ofP(i);
        ds[i] = weights[j] * fround(derivatives[j] - delta);
        const slope = tanh === null ? 1 : steps.slope(tanh[i]);
        ofBias[i] = steps.ofBias({ derivative: ds[i], slope });
        ds[i] *= slope;
        ds[i] *= first;
      });
    }
    roundTo(narrow, p);
    roundTo(narrow, ds);
    // As a framework writes them, to sum them afterwards.
    if (options.delta === 'weights') for (const terms of [ofBias, ofSink]) roundTo(narrow, terms);
    all.bias.push(ofBias);
    all.sink.push(ofSink);
    const matrix = (of: GradientOf, values: Float32Array) =>
      all[of].push(steps.factors({ of, head, values: values.slice() }, read));
    matrix('dv', p);
    matrix('dq', ds);
    matrix('dk', ds);
  }
  return all;
}

/** The terms of dK or dV of each key of a head: of every row of the heads that share it. */
function termsOfKeys(
  { shape: { queries, keys }, steps }: Run,
  factors: readonly Float32Array[],
  [kvHead, dim]: readonly [number, number],
): SumTerms[] {
  const heads = steps.heads(kvHead);
  const count = heads.length * queries;
  const ofKeys = new Float32Array(keys * count);
  const offsets = new Int32Array(count);
  heads.forEach((head, index) => {
    for (let row = 0; row < queries; row++) {
      const at = index * queries + row;
      offsets[at] = (head * queries + row) * dim;
      for (let key = 0; key < keys; key++)
        ofKeys[key * count + at] = factors[head][row * keys + key];
    }
  });
  return Array.from({ length: keys }, (_, key) => ({
    factors: ofKeys.subarray(key * count, (key + 1) * count),
    offsets,
    ofHead: queries,
  }));
}

function gradients(run: Run, factors: Readonly<Record<GradientOf, Float32Array[]>>) {
  const { problem, shape, steps, options, q, k, dout } = run;
  const { batch, heads, kvHeads, queries, keys, qkDim, vDim } = shape;
  const { order = 'ascending', seed = 0, scalesFirst = false } = options;
  const law = (of: GradientOf) => ({ order, seed, accumulator: steps.accumulators[of] });
  const dq = new Float32Array(batch * heads * queries * qkDim);
  const sumQueries = orderedSums(law('dq'), qkDim);
  for (let head = 0; head < batch * heads; head++) {
    const firstKey = steps.kvHead(head) * keys;
    const offsets = Int32Array.from({ length: keys }, (_, key) => (firstKey + key) * qkDim);
    for (let row = 0; row < queries; row++) {
      const ofRow = factors.dq[head].subarray(row * keys, (row + 1) * keys);
      dq.set(sumQueries({ factors: ofRow, offsets }, k), (head * queries + row) * qkDim);
    }
  }
  const ofKeys = (of: 'dk' | 'dv', rows: Float32Array, dim: number) => {
    const sum = orderedSums(law(of), dim);
    const all = new Float32Array(batch * kvHeads * keys * dim);
    for (let kvHead = 0; kvHead < batch * kvHeads; kvHead++)
      termsOfKeys(run, factors[of], [kvHead, dim]).forEach((terms, key) =>
        all.set(sum(terms, rows), (kvHead * keys + key) * dim),
      );
    return all;
  };
  const sums = { dq, dk: ofKeys('dk', q, qkDim), dv: ofKeys('dv', dout, vDim) };
  const finish = (of: GradientOf) => {
    const scale = scalesFirst ? steps.scales[of] / fround(problem.scale) : steps.scales[of];
    const factor = of === 'dv' ? steps.scales.dv : scale;
    return steps.stored(
      of,
      sums[of].map((sum) => sum * factor),
    );
  };
  return steps.afterwards({ dq: finish('dq'), dk: finish('dk'), dv: finish('dv') });
}

/**
 * A backward in plain fp32 that takes every feature of a problem: a correct kernel of no particular make, for tests of what
 * judges, and with steps changed a faulty one. The forward rounds its weights and O, the backward makes P again from the LSE;
 * P and dS are rounded before their products, sums are fp32 in the order that is asked for, exp, log and tanh rounded from fp64. Outputs have
 * the format of Q, bf16 for 8 bits; of a sample of rows dK and dV are what these rows add.
 */
export function backwardKernel(options: BackwardOptions = {}): BackwardKernel {
  return (problem, gradient) => {
    const shape = problemShape(problem);
    const { batch, heads, kvHeads, queries, keys, qkDim, vDim } = shape;
    const { format } = problem.q;
    const output = format === 'e4m3' || format === 'e5m2' ? 'bf16' : format;
    const correct = correctSteps(problem, shape);
    const run: Run = {
      problem,
      shape,
      steps: { ...correct, ...options.change?.(correct, problem, shape) },
      options,
      q: decode(problem.q),
      k: decode(problem.k),
      v: decode(problem.v),
      dout: decode(gradient),
      narrow: options.factors ?? output,
      output,
    };
    const { out, lse, logarithm } = forward(run);
    const delta = run.steps.delta({ out, dout: run.dout });
    const backward = { ...run, ...run.steps.inputs(run) };
    const factors = factorsOf(backward, run.steps.read({ logarithm, delta }));
    const { dq, dk, dv } = gradients(backward, factors);
    const { dbias, dsink } = sharedGradients(backward, factors);
    const tensor = (of: FormatName, tensorShape: readonly number[], values: Float32Array) => ({
      format: of,
      shape: tensorShape,
      data: encodeFromFloat64(formats[of], Float64Array.from(values)),
    });
    return {
      out: tensor(output, [batch, heads, queries, vDim], out),
      lse: tensor('fp32', [batch, heads, queries], lse),
      dq: tensor(output, [batch, heads, queries, qkDim], dq),
      dk: tensor(output, [batch, kvHeads, keys, qkDim], dk),
      dv: tensor(output, [batch, kvHeads, keys, vDim], dv),
      ...(problem.bias && dbias && { dbias: tensor(output, problem.bias.shape, dbias) }),
      ...(dsink && { dsink: tensor('fp32', [heads], dsink) }),
    };
  };
}

/** Correct kernels in five orders of operations; the scale, D and what is rounded differ too. */
export const correctBackwards: Readonly<Record<string, BackwardOptions>> = {
  ascending: {},
  descending: { order: 'descending', scalesFirst: true },
  tiles: { order: 'tiles', delta: 'weights' },
  'any order': { order: 'any', seed: 1 },
  pairwise: { order: 'pairwise', delta: 'weights', scalesFirst: true },
};
