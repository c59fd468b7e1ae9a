import type { KernelOutputs } from '../../../src/audit/index.js';
import { decodeTensor, formats, round, type FormatName } from '../../../src/formats/index.js';
import {
  keptWeights,
  keysOf,
  problemMask,
  problemShape,
  rowPlaces,
  type Problem,
} from '../../../src/problem/index.js';
import { encode } from '../damage.js';

/** The liberties that a correct kernel takes with the features of a problem. All of its arithmetic is fp32. */
export interface Liberties {
  /** Keys of a tile, after each of which the running maximum may grow. */
  readonly tile: number;
  readonly order: 'ascending' | 'descending';
  /** Exponentials of base 2 or e. */
  readonly base: 2 | 'e';
  /** Where the scale multiplies: scores before the addition; their sum with an addend that was divided by it. */
  readonly scale: 'before' | 'after';
  /** How ALiBi counts: the distance from the diagonal, or the key's number where the mask is causal. */
  readonly alibi: 'distance' | 'key';
  /** Whether a sink takes part in the maximum, or joins the row sum at the end. */
  readonly sink: 'in-maximum' | 'at-the-end';
  /** Where dropout's factor multiplies: P before it is rounded, or the output at the end. */
  readonly dropout: 'before-rounding' | 'at-the-end';
  /** Whether weights are divided by the row sum before they are rounded. */
  readonly division: 'first' | 'last';
}

const { fround } = Math;

/** A row's weights before the division, their sum and what they are relative to. */
interface Softmax {
  readonly weights: Float64Array;
  readonly total: number;
  readonly maximum: number;
}

/**
 * A correct kernel with every feature, in plain fp32, written apart from the oracle, from the law of a problem and not
 * from `scoreLaw`.
 */
export function liberalKernel(
  problem: Problem,
  outputFormat: FormatName,
  liberties: Liberties,
): KernelOutputs {
  const shape = problemShape(problem);
  const { batch, heads, kvHeads, groupSize, queries, keys, qkDim, vDim } = shape;
  const [q, k, v] = [problem.q, problem.k, problem.v].map((tensor) => decodeTensor(tensor));
  const sinks = problem.sink === undefined ? null : decodeTensor(problem.sink.logits);
  const slopes = problem.alibiSlopes === undefined ? null : decodeTensor(problem.alibiSlopes);
  const bias = problem.bias === undefined ? null : decodeTensor(problem.bias);
  const mask = problemMask(problem, shape);
  const kept = keptWeights(problem, shape);
  const placeOf = rowPlaces(problem, shape);
  const weightFormat = formats[problem.v.format];
  const exponential = (x: number) => fround(liberties.base === 2 ? 2 ** x : Math.exp(x));
  // What is common to a row may be left out where there is no sink.
  const countsKeys = liberties.alibi === 'key' && problem.causal && sinks === null;
  const toBase = liberties.base === 2 ? Math.LOG2E : 1;
  const scale = fround(problem.scale);
  const scaleOfSum = fround(fround(problem.scale) * toBase);

  /** Bias and ALiBi, each rounded, and added. */
  function addendOf(head: number, query: number, key: number): number {
    const place = placeOf(head, query);
    const local = key - place.firstKey;
    let sum = 0;
    if (bias !== null) {
      const sizes = [1, 1, 1, 1, ...problem.bias!.shape].slice(-4);
      const at = [place.sequence, place.head, place.query, local];
      const flat = at.reduce(
        (index, x, axis) => index * sizes[axis] + (sizes[axis] === 1 ? 0 : x),
        0,
      );
      sum = fround(bias[flat]);
    }
    if (slopes === null) return sum;
    const perSequence = problem.alibiSlopes!.shape.length === 2 ? heads : 0;
    const slope = slopes[place.sequence * perSequence + place.head];
    const diagonal = place.query + place.keys - place.queries;
    const ofKey = countsKeys;
    return fround(sum + fround(fround(slope) * (ofKey ? local : -Math.abs(diagonal - local))));
  }

  /** The exponent of a key in the base of the exponential. */
  function exponentOf(row: number, head: number, kv: number, key: number): number {
    let dot = 0;
    for (let t = 0; t < qkDim; t++)
      dot = fround(dot + q[row * qkDim + t] * k[(kv * keys + key) * qkDim + t]);
    const added = addendOf(head, row % queries, key);
    if (liberties.scale === 'after' && problem.softcap === null && scale !== 0)
      return fround(fround(dot + fround(added / scale)) * scaleOfSum);
    const scaled = fround(dot * scale);
    const cap = problem.softcap;
    const capped = cap === null ? scaled : fround(cap * fround(Math.tanh(fround(scaled / cap))));
    return fround(fround(capped + added) * fround(toBase));
  }

  function softmax(exponents: Float64Array, sink: number): Softmax {
    const firsts: number[] = [];
    for (let first = 0; first < exponents.length; first += liberties.tile) firsts.push(first);
    if (liberties.order === 'descending') firsts.reverse();
    const ofSink = fround(sink * fround(toBase));
    let maximum = liberties.sink === 'in-maximum' ? ofSink : -Infinity;
    let total = liberties.sink === 'in-maximum' && ofSink !== -Infinity ? 1 : 0;
    const weights = new Float64Array(exponents.length);
    const done: number[] = [];
    for (const first of firsts) {
      const last = Math.min(exponents.length, first + liberties.tile);
      let next = maximum;
      for (let j = first; j < last; j++) next = Math.max(next, exponents[j]);
      const factor = maximum === -Infinity ? 0 : exponential(fround(maximum - next));
      total = fround(total * factor);
      for (const j of done) weights[j] = fround(weights[j] * factor);
      maximum = next;
      for (let j = first; j < last; j++) {
        weights[j] = exponential(fround(exponents[j] - maximum));
        total = fround(total + weights[j]);
        done.push(j);
      }
    }
    if (liberties.sink === 'at-the-end' && sink !== -Infinity) {
      // Whose sum would leave the range of fp32 has to be rescaled.
      if (maximum === -Infinity || ofSink - maximum > 80) {
        const factor = exponential(fround(maximum - ofSink));
        total = fround(total * factor);
        for (const j of done) weights[j] = fround(weights[j] * factor);
        maximum = ofSink;
      }
      total = fround(total + exponential(fround(ofSink - maximum)));
    }
    return { weights, total, maximum };
  }

  const out = new Float64Array(batch * heads * queries * vDim);
  const lse = new Float64Array(batch * heads * queries).fill(-Infinity);
  const rate = fround(1 / fround(1 - fround(problem.dropout?.probability ?? 0)));
  for (let row = 0; row < lse.length; row++) {
    const head = Math.floor(row / queries);
    const kv = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
    const visible = Int32Array.from(keysOf(mask.ranges(head, row % queries)));
    const sink = sinks?.[head % heads] ?? -Infinity;
    const exponents = Float64Array.from(visible, (key) => exponentOf(row, head, kv, key));
    const { weights, total, maximum } = softmax(exponents, sink);
    const hasLse = problem.sink?.inLse ?? false;
    const ofLse = sink === -Infinity || hasLse ? { total, maximum } : softmax(exponents, -Infinity);
    if (ofLse.total > 0)
      lse[row] = fround(fround(ofLse.maximum / toBase) + fround(Math.log(ofLse.total)));
    // FlashAttention-2 leaves out of ALiBi what is common to a row, and so does its LSE.
    if (countsKeys && slopes !== null) lse[row] = NaN;
    if (visible.length === 0) continue;
    const sums = new Float64Array(vDim);
    const isKept = new Uint8Array(1);
    visible.forEach((key, j) => {
      kept?.fill(head, row % queries, key, isKept);
      if (kept !== null && isKept[0] === 0) return;
      let p = weights[j];
      if (liberties.division === 'first') p = fround(p / total);
      if (kept !== null && liberties.dropout === 'before-rounding') p = fround(p * rate);
      p = round(weightFormat, p);
      for (let c = 0; c < vDim; c++)
        sums[c] = fround(sums[c] + p * v[(kv * keys + key) * vDim + c]);
    });
    for (let c = 0; c < vDim; c++) {
      let x = liberties.division === 'first' ? sums[c] : fround(sums[c] / total);
      if (kept !== null && liberties.dropout === 'at-the-end') x = fround(x * rate);
      out[row * vDim + c] = x;
    }
  }
  return {
    out: encode(out, outputFormat, [batch, heads, queries, vDim]),
    lse: encode(lse, 'fp32', [batch, heads, queries]),
  };
}
