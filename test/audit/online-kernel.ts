import type { KernelOutputs } from '../../src/audit/index.js';
import { formats, round, type FormatName } from '../../src/formats/index.js';
import { problemShape, visibleKeys, type Problem } from '../../src/problem/index.js';
import { decode, encode } from './damage.js';

/** One step of a row's online softmax, as a faulty kernel may change it. */
export interface Step {
  readonly head: number;
  readonly query: number;
  /** The block's place in the order of visits, from 0. */
  readonly visit: number;
  readonly visits: number;
}

/** The steps of a flash-style forward; every fault replaces some. Defaults are those of a correct kernel. */
export interface OnlineKernel {
  readonly outputFormat: FormatName;
  readonly block: number;
  /** Keys that the loop runs over; those beyond the problem's are zeros. */
  readonly paddedKeys: (keys: number) => number;
  readonly kvHead: (head: number, groupSize: number, kvHeads: number) => number;
  readonly batch: (batch: number, batches: number) => number;
  readonly sees: (query: number, key: number, correct: boolean) => boolean;
  /** The keys from which K and V of a block's key are read. */
  readonly keySource: (key: number) => number;
  readonly valueSource: (key: number) => number;
  readonly score: (dot: number, problem: Problem) => number;
  /** The maximum after a block, from the one before and the block's own. */
  readonly maximum: (before: number, ofBlock: number) => number;
  /** 2^x. */
  readonly exp2: (x: number) => number;
  /** P is shifted by this power of two before its rounding. */
  readonly offset: number;
  readonly roundWeight: (p: number, format: FormatName) => number;
  readonly inSum: (key: number, step: Step) => boolean;
  /** The factors for O and for the row sum, given the block's own and the previous one. */
  readonly rescale: (
    factor: number,
    previous: number,
    step: Step,
  ) => { readonly output: number; readonly sum: number };
  /** What O becomes between two blocks. */
  readonly keep: (partial: number) => number;
  readonly normalise: (partial: number, sum: number, maximum: number) => number;
  readonly lse: (maximum: number, sum: number) => number;
  readonly emptyRow: { readonly out: number; readonly lse: number };
}

const float32 = Math.fround;

export const correctKernel: OnlineKernel = {
  outputFormat: 'bf16',
  block: 64,
  paddedKeys: (keys) => keys,
  kvHead: (head, groupSize) => Math.floor(head / groupSize),
  batch: (batch) => batch,
  sees: (_query, _key, correct) => correct,
  keySource: (key) => key,
  valueSource: (key) => key,
  score: (dot, { scale, softcap }) =>
    softcap === null ? dot * scale : softcap * Math.tanh((dot * scale) / softcap),
  maximum: (before, ofBlock) => Math.max(before, ofBlock),
  exp2: (x) => 2 ** x,
  offset: 0,
  roundWeight: (p, format) => round(formats[format], p, { overflow: 'saturate' }),
  inSum: () => true,
  rescale: (factor) => ({ output: factor, sum: factor }),
  keep: (partial) => partial,
  normalise: (partial, sum) => partial / sum,
  lse: (maximum, sum) => maximum + Math.log(sum),
  emptyRow: { out: 0, lse: -Infinity },
};

/**
 * Runs a flash-style forward row by row: fp32 sums, blocks from the last to the first, P rounded to
 * V's format after the row sum took it. Written apart from the oracle and from the diagnosis.
 */
export function runOnlineKernel(problem: Problem, changes: Partial<OnlineKernel>): KernelOutputs {
  const kernel = { ...correctKernel, ...changes };
  const shape = problemShape(problem);
  const { batch: batches, heads, kvHeads, groupSize, queries, keys, qkDim, vDim } = shape;
  const [q, k, v] = [decode(problem.q), decode(problem.k), decode(problem.v)];
  const padded = kernel.paddedKeys(keys);
  const out = new Float64Array(batches * heads * queries * vDim);
  const lse = new Float64Array(batches * heads * queries);
  for (let row = 0; row < lse.length; row++) {
    const flatHead = Math.floor(row / queries);
    const batch = kernel.batch(Math.floor(flatHead / heads), batches);
    const kv = batch * kvHeads + kernel.kvHead(flatHead % heads, groupSize, kvHeads);
    const query = row % queries;
    const range = visibleKeys(problem, shape, query);
    const at = (source: number, c: number, values: Float64Array, dim: number) =>
      source < 0 || source >= keys ? 0 : values[(kv * keys + source) * dim + c];
    let maximum = -Infinity;
    let sum = 0;
    let previous = 1;
    const partial = new Float64Array(vDim);
    const visits = Math.ceil(padded / kernel.block);
    for (let visit = 0; visit < visits; visit++) {
      const first = (visits - 1 - visit) * kernel.block;
      const step: Step = { head: flatHead, query, visit, visits };
      const scores: { key: number; score: number }[] = [];
      for (let key = first; key < Math.min(first + kernel.block, padded); key++) {
        const correct = key >= keys || (key >= range.begin && key < range.end);
        if (!kernel.sees(query, key, correct)) continue;
        let dot = 0;
        for (let t = 0; t < qkDim; t++)
          dot = float32(dot + q[row * qkDim + t] * at(kernel.keySource(key), t, k, qkDim));
        scores.push({ key, score: kernel.score(dot, problem) });
      }
      const ofBlock = scores.reduce((most, { score }) => Math.max(most, score), -Infinity);
      const next = kernel.maximum(maximum, ofBlock);
      const factor = maximum === -Infinity ? 1 : float32(Math.exp(maximum - next));
      if (next === -Infinity) continue;
      const { output, sum: ofSum } = kernel.rescale(factor, previous, step);
      previous = factor;
      maximum = next;
      sum = float32(sum * ofSum);
      for (let c = 0; c < vDim; c++) partial[c] = float32(kernel.keep(partial[c]) * output);
      for (const { key, score } of scores) {
        const p = float32(kernel.exp2((score - maximum) * Math.LOG2E + kernel.offset));
        if (kernel.inSum(key, step)) sum = float32(sum + p);
        const rounded = kernel.roundWeight(p, problem.v.format);
        const source = kernel.valueSource(key);
        for (let c = 0; c < vDim; c++)
          partial[c] = float32(partial[c] + rounded * at(source, c, v, vDim));
      }
    }
    const lost = sum === 0 || maximum === -Infinity;
    for (let c = 0; c < vDim; c++)
      out[row * vDim + c] = lost
        ? kernel.emptyRow.out
        : float32(kernel.normalise(partial[c], sum, maximum));
    lse[row] = lost ? kernel.emptyRow.lse : kernel.lse(maximum, sum) - kernel.offset * Math.LN2;
  }
  return {
    out: encode(out, kernel.outputFormat, [batches, heads, queries, vDim]),
    lse: encode(lse, 'fp32', [batches, heads, queries]),
  };
}
