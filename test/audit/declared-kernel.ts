import type { KernelOutputs } from '../../src/audit/index.js';
import { formats, round, type FormatName } from '../../src/formats/index.js';
import { problemShape, visibleKeys, type Problem } from '../../src/problem/index.js';
import { decode, encode } from './damage.js';

type Round = (x: number) => number;

/** How a plain kernel computes, where it is not as most do. */
export interface PlainArithmetic {
  readonly outputFormat: FormatName;
  /** Raw scores, scaled scores, and scores less the maximum are rounded so. */
  readonly score: Round;
  /** What Q and K are before their product. */
  readonly query: Round;
  readonly key: Round;
  /** What is left of the scale for the scores. */
  readonly scoreScale: number;
  readonly dotSum: Round;
  readonly valueSum: Round;
  readonly weight: Round;
  readonly exp: Round;
  readonly factor: Round;
  readonly sumsRounded: boolean;
  readonly dividesFirst: boolean;
  readonly maximum: 'row' | 'group' | 'none';
  /** Keys of a split, and how its result is stored; 0 for no splits. */
  readonly split: number;
  readonly partial: Round;
  readonly output: Round;
  readonly tile: number;
}

export const toFormat =
  (name: FormatName): Round =>
  (x) =>
    round(formats[name], x);
const float32: Round = Math.fround;
const same: Round = (x) => x;

/** The arithmetic of a plain fused kernel in the formats of a problem. */
export function plainArithmetic(problem: Problem): PlainArithmetic {
  return {
    outputFormat: problem.q.format,
    score: same,
    query: same,
    key: same,
    scoreScale: problem.scale,
    dotSum: float32,
    valueSum: float32,
    weight: toFormat(problem.v.format),
    exp: (x) => float32(Math.exp(x)),
    factor: (x) => float32(Math.exp(x)),
    sumsRounded: false,
    dividesFirst: false,
    maximum: 'row',
    split: 0,
    partial: same,
    output: toFormat(problem.q.format),
    tile: 64,
  };
}

/**
 * A plain kernel with the arithmetic given, in fp32 elsewhere; ascending blocks, an online maximum where
 * it is the row's. Written apart from the library.
 */
export function runPlainKernel(
  problem: Problem,
  changes: (plain: PlainArithmetic) => Partial<PlainArithmetic>,
): KernelOutputs {
  const plain = plainArithmetic(problem);
  const kernel = { ...plain, ...changes(plain) };
  const shape = problemShape(problem);
  const { batch, heads, kvHeads, groupSize, queries, keys, qkDim, vDim } = shape;
  const [q, k, v] = [
    decode(problem.q).map(kernel.query),
    decode(problem.k).map(kernel.key),
    decode(problem.v),
  ];
  const rows = batch * heads * queries;
  const out = new Float64Array(rows * vDim);
  const lse = new Float64Array(rows).fill(-Infinity);
  const scoresOf = (row: number) => {
    const head = Math.floor(row / queries);
    const kv = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
    const { begin, end } = visibleKeys(problem, shape, row % queries);
    const scores = new Float64Array(end - begin);
    for (let j = begin; j < end; j++) {
      let dot = 0;
      for (let t = 0; t < qkDim; t++)
        dot = kernel.dotSum(dot + q[row * qkDim + t] * k[(kv * keys + j) * qkDim + t]);
      const scaled = kernel.score(kernel.score(dot) * kernel.scoreScale);
      const cap = problem.softcap;
      scores[j - begin] = cap === null ? scaled : kernel.score(cap * Math.tanh(scaled / cap));
    }
    return { scores, first: kv * keys + begin };
  };
  /** Σ p v, Σ p and the maximum over some keys. */
  const partOf = (
    scores: Float64Array,
    first: number,
    from: number,
    to: number,
    given: number | null,
  ) => {
    let most = given ?? -Infinity;
    let sum = 0;
    const sums = new Float64Array(vDim);
    for (let tile = from; tile < to; tile += kernel.tile) {
      const end = Math.min(tile + kernel.tile, to);
      if (given === null) {
        const next = scores.subarray(tile, end).reduce((a, b) => Math.max(a, b), most);
        const factor = most === -Infinity || most === next ? 1 : kernel.factor(most - next);
        most = next;
        sum = float32(sum * factor);
        for (let c = 0; c < vDim; c++) sums[c] = kernel.valueSum(sums[c] * factor);
      }
      for (let j = tile; j < end; j++) {
        const p = kernel.exp(kernel.score(scores[j] - most));
        const rounded = kernel.dividesFirst ? p : kernel.weight(p);
        sum = float32(sum + (kernel.sumsRounded ? rounded : p));
        if (kernel.dividesFirst) continue;
        for (let c = 0; c < vDim; c++)
          sums[c] = kernel.valueSum(sums[c] + rounded * v[(first + j) * vDim + c]);
      }
    }
    if (kernel.dividesFirst)
      for (let j = from; j < to; j++) {
        const p = kernel.weight(float32(kernel.exp(kernel.score(scores[j] - most)) / sum));
        for (let c = 0; c < vDim; c++)
          sums[c] = kernel.valueSum(sums[c] + p * v[(first + j) * vDim + c]);
      }
    else for (let c = 0; c < vDim; c++) sums[c] = float32(sums[c] / sum);
    return { sums, lse: most + Math.log(sum) };
  };
  for (let row = 0; row < rows; row++) {
    const { scores, first } = scoresOf(row);
    if (scores.length === 0) continue;
    let given: number | null = null;
    if (kernel.maximum === 'none') given = 0;
    else if (kernel.maximum === 'group') {
      given = -Infinity;
      const start = row - (row % queries);
      const group = (row % queries) - ((row % queries) % 8);
      for (let other = start + group; other < start + Math.min(group + 8, queries); other++)
        for (const s of scoresOf(other).scores) given = Math.max(given, s);
    } else if (kernel.dividesFirst) given = scores.reduce((a, b) => Math.max(a, b), -Infinity);
    const size = kernel.split === 0 ? scores.length : kernel.split;
    const parts = Array.from({ length: Math.ceil(scores.length / size) }, (_, i) =>
      partOf(scores, first, i * size, Math.min((i + 1) * size, scores.length), given),
    );
    const most = parts.reduce((a, part) => Math.max(a, part.lse), -Infinity);
    const total = parts.reduce((a, part) => a + Math.exp(part.lse - most), 0);
    for (let c = 0; c < vDim; c++) {
      let sum = 0;
      for (const part of parts)
        sum +=
          (Math.exp(part.lse - most) / total) *
          (kernel.split === 0 ? part.sums[c] : kernel.partial(part.sums[c]));
      out[row * vDim + c] = kernel.output(sum);
    }
    lse[row] = most + Math.log(total);
  }
  const shapeOf = [batch, heads, queries];
  return {
    out: encode(out, kernel.outputFormat, [...shapeOf, vDim]),
    lse: encode(lse, 'fp32', shapeOf),
  };
}
