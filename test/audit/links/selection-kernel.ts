import { Float16Array } from '@petamoriken/float16';
import type { SelectionProblem } from '../../../oracles/index.js';
import { randomValues } from '../../../properties/problems/values.js';

/** Sizes of a drawn selection. */
export interface DrawnSizes {
  readonly batch: number;
  readonly queries: number;
  readonly queryHeads: number;
  readonly keyHeads: number;
  readonly lists: number;
  readonly keys: number;
  readonly dim: number;
  readonly listed: number;
  readonly blockSize: number;
}

/** Inputs of a selection as a kernel has them: fp32 numbers that fp16 holds, row-major. */
export interface KernelInputs extends DrawnSizes {
  readonly law: 'dot' | 'indexer' | 'block-mean' | 'block-bounds';
  readonly q: Float32Array;
  readonly k: Float32Array;
  readonly weights: Float32Array;
  readonly keyScale: Float32Array;
  /** The end of what each row of [batch, queries] sees, in candidates. */
  readonly end: Int32Array;
}

/** A mistake of the kernel: what it changes before, within or after the scores. */
export interface KernelMistake {
  readonly inputs?: (inputs: KernelInputs) => KernelInputs;
  /** Takes the place of relu. */
  readonly activate?: (x: number) => number;
  /** What becomes of a score before it is ranked. */
  readonly score?: (x: number) => number;
  readonly lists?: (lists: Int32Array, inputs: KernelInputs) => Int32Array;
}

const f = Math.fround;

/** Draws the inputs of a selection. */
export function drawInputs(
  seed: number,
  sizes: DrawnSizes,
  law: KernelInputs['law'],
  isCausal: boolean,
): KernelInputs {
  const random = randomValues(seed);
  const { batch, queries, queryHeads, keyHeads, keys, dim, blockSize } = sizes;
  const halves = (length: number) =>
    Float32Array.from(new Float16Array(Array.from({ length }, () => random.normal())));
  const positive = (length: number) =>
    Float32Array.from({ length }, () => f(0.5 + Math.abs(random.normal())));
  return {
    ...sizes,
    law,
    q: halves(batch * queries * queryHeads * dim),
    k: halves(batch * keys * keyHeads * dim),
    weights: Float32Array.from(halves(batch * queries * queryHeads)),
    keyScale: positive(batch * keys),
    end: Int32Array.from({ length: batch * queries }, (_, row) =>
      Math.ceil(Math.max(0, isCausal ? keys - queries + (row % queries) + 1 : keys) / blockSize),
    ),
  };
}

/** The score of a head and a candidate, in fp32, from the last dimension to the first. */
function headScore(
  inputs: KernelInputs,
  q: number,
  entry: number,
  keyHead: number,
  candidate: number,
): number {
  const { k, keys, keyHeads, dim, blockSize, law } = inputs;
  const at = (key: number, i: number) => k[((entry * keys + key) * keyHeads + keyHead) * dim + i];
  const last = Math.min(keys, (candidate + 1) * blockSize);
  const members = Array.from(
    { length: last - candidate * blockSize },
    (_, i) => candidate * blockSize + i,
  );
  let sum = 0;
  for (let i = dim - 1; i >= 0; i--) {
    const x = inputs.q[q * dim + i];
    if (law === 'block-bounds') {
      const products = members.map((key) => f(x * at(key, i)));
      sum = f(sum + Math.max(...products));
      continue;
    }
    let operand = 0;
    for (const key of members) operand = f(operand + at(key, i));
    sum = f(sum + f(x * (members.length === 1 ? operand : f(operand / members.length))));
  }
  return sum;
}

/** The scores of a row in fp32. */
export function kernelScores(
  inputs: KernelInputs,
  row: { readonly entry: number; readonly query: number; readonly list: number },
  { activate = (x) => Math.max(x, 0), score = (x) => x }: KernelMistake = {},
): number[] {
  const { queries, queryHeads, keyHeads, lists, law, keys, blockSize } = inputs;
  const { entry, query, list } = row;
  const ofList = queryHeads / lists;
  return Array.from({ length: Math.ceil(keys / blockSize) }, (_, candidate) => {
    let sum = 0;
    for (let h = list * ofList; h < (list + 1) * ofList; h++) {
      const at = (entry * queries + query) * queryHeads + h;
      const one = headScore(inputs, at, entry, Math.floor(h / (queryHeads / keyHeads)), candidate);
      sum = f(sum + (law === 'indexer' ? f(activate(one) * inputs.weights[at]) : one));
    }
    return score(law === 'indexer' ? f(sum * inputs.keyScale[entry * keys + candidate]) : sum);
  });
}

/** What a kernel selects, −1 behind the last of rows that see too few. */
export function select(given: KernelInputs, mistake: KernelMistake = {}): Int32Array {
  const inputs = mistake.inputs?.(given) ?? given;
  const { batch, queries, lists, listed, end } = inputs;
  const all: number[] = [];
  for (let entry = 0; entry < batch; entry++)
    for (let query = 0; query < queries; query++)
      for (let list = 0; list < lists; list++) {
        const scores = kernelScores(inputs, { entry, query, list }, mistake);
        const visible = [...scores.keys()].slice(0, end[entry * queries + query]);
        visible.sort((a, b) => scores[b] - scores[a] || a - b);
        const chosen = visible.slice(0, listed);
        all.push(...chosen, ...new Array<number>(listed - chosen.length).fill(-1));
      }
  return mistake.lists?.(Int32Array.from(all), inputs) ?? Int32Array.from(all);
}

/** The problem that inputs pose. */
export function problemOf(inputs: KernelInputs): SelectionProblem {
  const { batch, queries, queryHeads, keyHeads, lists, listed, keys, dim, blockSize, law, end } =
    inputs;
  const tensor = (data: Float32Array, shape: readonly number[]) => ({
    format: 'fp32' as const,
    shape,
    data,
  });
  return {
    law,
    shape: { batch, queries, heads: lists, listed, keys, candidates: Math.ceil(keys / blockSize) },
    count: listed,
    first: new Int32Array(batch * queries),
    end,
    forced: { first: false, last: false },
    reduction: 'sum',
    activation: 'relu',
    blockSize,
    q: tensor(inputs.q, [batch, queries, queryHeads, dim]),
    k: tensor(inputs.k, [batch, keys, keyHeads, dim]),
    ...(law === 'indexer' && {
      weights: tensor(inputs.weights, [batch, queries, queryHeads]),
      keyScale: tensor(inputs.keyScale, [batch, keys]),
    }),
  };
}
