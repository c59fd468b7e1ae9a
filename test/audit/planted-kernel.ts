import type { KernelOutputs } from '../../src/audit/index.js';
import { formats, round, type FormatName } from '../../src/formats/index.js';
import {
  problemShape,
  visibleKeys,
  type Problem,
  type ProblemShape,
} from '../../src/problem/index.js';
import { decode, encode } from './damage.js';

/** Where a row's online softmax stands, for a fault that is confined to a place. */
export interface Place {
  /** Query head within the batch entry. */
  readonly head: number;
  readonly heads: number;
  readonly query: number;
  readonly queries: number;
  readonly keys: number;
  /** The block's place in the order of visits within its split, from 0. */
  readonly visit: number;
  readonly visits: number;
}

/** The steps of a flash-style forward; a bug replaces some. Defaults are those of a correct kernel. */
export interface PlantedKernel {
  readonly block: number;
  readonly order: 'first to last' | 'last to first';
  /** Stretches of keys that are computed apart and combined by their LSE. */
  readonly splits: number;
  /** Keys that the loop runs over; those beyond the problem's are zeros. */
  readonly paddedKeys: (keys: number) => number;
  readonly kvHead: (head: number, groupSize: number, kvHeads: number) => number;
  readonly batch: (batch: number, batches: number) => number;
  readonly sees: (key: number, correct: boolean, place: Place) => boolean;
  /** The key that K or V of `key` is read from; what is no key reads as zeros. */
  readonly keySource: (key: number, place: Place) => number;
  readonly valueSource: (key: number, place: Place) => number;
  /** An element of Q before its products, and the sum of products after each of them. */
  readonly query: ((x: number, problem: Problem) => number) | null;
  readonly product: ((sum: number) => number) | null;
  /** In natural units. */
  readonly score: (dot: number, problem: Problem, key: number, place: Place) => number;
  /** The maximum after a block, from the one before and the block's own. */
  readonly maximum: (before: number, ofBlock: number) => number;
  /** The argument of 2^x, and 2^x. */
  readonly exponent: (x: number) => number;
  readonly exp2: (x: number) => number;
  /** P is shifted by this power of two before its rounding. */
  readonly offset: number;
  readonly roundWeight: (p: number, format: FormatName) => number;
  readonly inSum: (key: number, place: Place) => boolean;
  /** The row sum after each of its additions, and after a block. */
  readonly addToSum: (sum: number) => number;
  readonly keepSum: (sum: number) => number;
  /** The factors for O and for the row sum, given the block's own and the previous one. */
  readonly rescale: (
    factor: number,
    previous: number,
    place: Place,
  ) => { readonly output: number; readonly sum: number };
  /** An element of O after each of its additions, and after a block. */
  readonly accumulate: ((partial: number) => number) | null;
  readonly keep: (partial: number) => number;
  /** What a split hands on: an element of its O, divided by its row sum. */
  readonly partial: (x: number) => number;
  /** The weight of a split's O, from its LSE and that of all. */
  readonly splitWeight: (lse: number, all: number, splits: number) => number;
  readonly normalise: (partial: number, sum: number, maximum: number, place: Place) => number;
  /** The output as it is handed to the rounding to its format. */
  readonly store: (x: number, format: FormatName) => number;
  readonly lse: (maximum: number, sum: number, place: Place) => number;
  /** What happens to the outputs afterwards, in place. */
  readonly afterwards: (out: Float64Array, lse: Float64Array, shape: ProblemShape) => void;
}

const float32 = Math.fround;

export const soundKernel: PlantedKernel = {
  block: 64,
  order: 'last to first',
  splits: 1,
  paddedKeys: (keys) => keys,
  kvHead: (head, groupSize) => Math.floor(head / groupSize),
  batch: (batch) => batch,
  sees: (_key, correct) => correct,
  keySource: (key) => key,
  valueSource: (key) => key,
  query: null,
  product: null,
  score: (dot, { scale, softcap }) =>
    softcap === null ? dot * scale : softcap * Math.tanh((dot * scale) / softcap),
  maximum: (before, ofBlock) => Math.max(before, ofBlock),
  exponent: (x) => x,
  exp2: (x) => 2 ** x,
  offset: 0,
  roundWeight: (p, format) => round(formats[format], p, { overflow: 'saturate' }),
  inSum: () => true,
  addToSum: (sum) => sum,
  keepSum: (sum) => sum,
  rescale: (factor) => ({ output: factor, sum: factor }),
  accumulate: null,
  keep: (partial) => partial,
  partial: (x) => x,
  splitWeight: (lse, all) => Math.exp(lse - all),
  normalise: (partial, sum) => partial / sum,
  store: (x) => x,
  lse: (maximum, sum) => maximum + Math.log(sum),
  afterwards: () => undefined,
};

/** A split's O, divided by its row sum, and its LSE. */
interface Part {
  readonly out: Float64Array;
  readonly lse: number;
}

/** One (batch, head) of a problem as its rows read it. */
interface Operands {
  readonly problem: Problem;
  readonly shape: ProblemShape;
  readonly q: Float64Array;
  readonly k: Float64Array;
  readonly v: Float64Array;
  /** First element of the kv head in K and in V. */
  readonly keyBase: number;
  readonly valueBase: number;
}

function dotOf(kernel: PlantedKernel, of: Operands, row: number, source: number): number {
  const { qkDim, keys } = of.shape;
  if (source < 0 || source >= keys) return 0;
  const { query, product } = kernel;
  const from = of.keyBase + source * qkDim;
  let dot = 0;
  for (let t = 0; t < qkDim; t++) {
    const q = of.q[row * qkDim + t];
    dot = float32(dot + (query === null ? q : query(q, of.problem)) * of.k[from + t]);
    if (product !== null) dot = product(dot);
  }
  return dot;
}

/** The keys from `begin` to `end`, block by block. */
function runPart(
  kernel: PlantedKernel,
  of: Operands,
  row: number,
  head: number,
  begin: number,
  end: number,
): Part {
  const { problem, shape, v } = of;
  const { heads, queries, keys, vDim } = shape;
  const query = row % queries;
  const range = visibleKeys(problem, shape, query);
  const visits = Math.ceil((end - begin) / kernel.block);
  const out = new Float64Array(vDim);
  const scores = new Float64Array(kernel.block);
  let maximum = -Infinity;
  let sum = 0;
  let previous = 1;
  let place: Place = { head, heads, query, queries, keys, visit: 0, visits };
  for (let visit = 0; visit < visits; visit++) {
    place = { ...place, visit };
    const index = kernel.order === 'first to last' ? visit : visits - 1 - visit;
    const first = begin + index * kernel.block;
    const last = Math.min(first + kernel.block, end);
    let ofBlock = -Infinity;
    for (let key = first; key < last; key++) {
      const correct = key >= keys || (key >= range.begin && key < range.end);
      const score = kernel.sees(key, correct, place)
        ? kernel.score(dotOf(kernel, of, row, kernel.keySource(key, place)), problem, key, place)
        : -Infinity;
      scores[key - first] = score;
      ofBlock = Math.max(ofBlock, score);
    }
    const next = kernel.maximum(maximum, ofBlock);
    if (next === -Infinity) continue;
    const factor = maximum === -Infinity ? 1 : float32(Math.exp(maximum - next));
    const { output, sum: ofSum } = kernel.rescale(factor, previous, place);
    previous = factor;
    maximum = next;
    sum = float32(sum * ofSum);
    for (let c = 0; c < vDim; c++) out[c] = float32(out[c] * output);
    for (let key = first; key < last; key++) {
      const score = scores[key - first];
      if (score === -Infinity) continue;
      const x = kernel.exponent((score - maximum) * Math.LOG2E);
      const p = float32(kernel.exp2(x + kernel.offset));
      if (kernel.inSum(key, place)) sum = kernel.addToSum(float32(sum + p));
      const source = kernel.valueSource(key, place);
      if (source < 0 || source >= keys) continue;
      const rounded = kernel.roundWeight(p, problem.v.format);
      const from = of.valueBase + source * vDim;
      for (let c = 0; c < vDim; c++) {
        out[c] = float32(out[c] + rounded * v[from + c]);
        if (kernel.accumulate !== null) out[c] = kernel.accumulate(out[c]);
      }
    }
    for (let c = 0; c < vDim; c++) out[c] = kernel.keep(out[c]);
    sum = kernel.keepSum(sum);
  }
  if (sum === 0 || maximum === -Infinity) return { out: new Float64Array(vDim), lse: -Infinity };
  const lse = kernel.lse(maximum, sum, place) - kernel.offset * Math.LN2;
  return { out: out.map((x) => float32(kernel.normalise(x, sum, maximum, place))), lse };
}

function combine(kernel: PlantedKernel, parts: readonly Part[]): Part {
  const [first] = parts;
  if (parts.length === 1) return first!;
  const largest = Math.max(...parts.map(({ lse }) => lse));
  const all = largest + Math.log(parts.reduce((sum, { lse }) => sum + Math.exp(lse - largest), 0));
  const out = new Float64Array(first!.out.length);
  for (const part of parts) {
    const weight = part.lse === -Infinity ? 0 : kernel.splitWeight(part.lse, all, parts.length);
    for (let c = 0; c < out.length; c++)
      out[c] = float32(out[c] + weight * kernel.partial(part.out[c]));
  }
  return { out, lse: largest === -Infinity ? -Infinity : all };
}

/**
 * Runs a flash-style forward row by row: fp32 sums, P rounded to V's format after the row sum took it,
 * O in Q's format. Written apart from the oracle and from the diagnosis.
 */
export function runPlantedKernel(
  problem: Problem,
  changes: Partial<PlantedKernel> = {},
): KernelOutputs {
  const kernel = { ...soundKernel, ...changes };
  const shape = problemShape(problem);
  const { batch: batches, heads, kvHeads, groupSize, queries, keys, qkDim, vDim } = shape;
  const [q, k, v] = [decode(problem.q), decode(problem.k), decode(problem.v)];
  const padded = kernel.paddedKeys(keys);
  const size = Math.max(1, Math.ceil(padded / kernel.splits));
  const out = new Float64Array(batches * heads * queries * vDim);
  const lse = new Float64Array(batches * heads * queries);
  for (let row = 0; row < lse.length; row++) {
    const flatHead = Math.floor(row / queries);
    const batch = kernel.batch(Math.floor(flatHead / heads), batches);
    const kv = batch * kvHeads + kernel.kvHead(flatHead % heads, groupSize, kvHeads);
    const keyBase = kv * keys * qkDim;
    const of = { problem, shape, q, k, v, keyBase, valueBase: kv * keys * vDim };
    const parts: Part[] = [];
    for (let begin = 0; begin < padded; begin += size)
      parts.push(runPart(kernel, of, row, flatHead % heads, begin, Math.min(begin + size, padded)));
    if (parts.length === 0) parts.push({ out: new Float64Array(vDim), lse: -Infinity });
    const whole = combine(kernel, parts);
    out.set(whole.out, row * vDim);
    lse[row] = whole.lse;
  }
  const { format } = problem.q;
  const stored = out.map((x) => kernel.store(x, format));
  kernel.afterwards(stored, lse, shape);
  return {
    out: encode(stored, format, [batches, heads, queries, vDim]),
    lse: encode(lse, 'fp32', [batches, heads, queries]),
  };
}
