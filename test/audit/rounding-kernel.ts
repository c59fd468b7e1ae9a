import type { KernelOutputs } from '../../src/audit/index.js';
import { formats, round, ulp, type FormatName } from '../../src/formats/index.js';
import { problemShape, visibleKeys, type Problem } from '../../src/problem/index.js';
import { decode, encode } from './damage.js';

/** The liberties a correct kernel takes. */
export interface Liberties {
  readonly outputFormat: FormatName;
  /** The max that P is scaled by lags behind the true one by this much, in log2 units. */
  readonly lag: (row: number) => number;
  /** Keys per tile: the running max is that of the tiles seen so far when each is rounded. */
  readonly tile: number;
  /** The tiles' order; default ascending. */
  readonly order?: 'ascending' | 'descending';
  /** What weights are rounded relative to; default `running`, by tile. */
  readonly maximum?: WeightReference;
  /** e^x for x ≤ 0 or little above; default correct to fp64. */
  readonly exponential?: (x: number) => number;
  /** What P is multiplied by before it is rounded, and its products' sum divided by; default 1. */
  readonly weightScale?: number;
  /** Whether sums lose what is below fp32, after every eighth product, as tensor cores may; default not. */
  readonly sumsTruncate?: boolean;
}

/**
 * The largest score so far; the row's, known before; the row's LSE, so that weights are divided by their sum
 * before they are rounded; no maximum at all.
 */
export type WeightReference = 'running' | 'row' | 'sum' | 'none';

/** e^x by a cubic polynomial for the fraction of the exponent, as FlashAttention-4 does: within 8.8e-5. */
export function cubicExponential(x: number): number {
  const exponent = x * Math.LOG2E;
  const whole = Math.floor(exponent);
  const f = exponent - whole;
  const [a, b, c] = [0.6951461434364319, 0.22756439447402954, 0.07711908966302872];
  return 2 ** whole * (1 + f * (a + f * (b + f * c)));
}

/** x without what fp32 cannot hold. */
function truncateToFloat32(x: number): number {
  const rounded = Math.fround(x);
  if (Math.abs(rounded) <= Math.abs(x)) return rounded;
  return rounded - Math.sign(x) * ulp(formats.fp32, Math.abs(x));
}

/** Products that a truncating sum takes in at once. */
const fusedProducts = 8;

/**
 * A correct flash-style kernel: fp32 sums (fp64 for fp64 inputs), P rounded to V's format after scaling by a running and
 * lagging max, row sum of the unrounded P, O rounded once. Written apart from the oracle.
 */
export function roundingKernel(problem: Problem, liberties: Liberties): KernelOutputs {
  const shape = problemShape(problem);
  const { batch, heads, kvHeads, groupSize, queries, keys, qkDim, vDim } = shape;
  const [q, k, v] = [decode(problem.q), decode(problem.k), decode(problem.v)];
  const working = problem.q.format === 'fp64' ? (x: number) => x : Math.fround;
  const { sumsTruncate = false, maximum = 'running', exponential = Math.exp } = liberties;
  const { weightScale = 1 } = liberties;
  /** A sum so far, with the product of index `i` in. */
  const add = (sum: number, product: number, i: number) =>
    sumsTruncate
      ? i % fusedProducts === fusedProducts - 1
        ? truncateToFloat32(sum + product)
        : sum + product
      : working(sum + product);
  const weightFormat = formats[problem.v.format];
  const out = new Float64Array(batch * heads * queries * vDim);
  const lse = new Float64Array(batch * heads * queries);
  for (let row = 0; row < lse.length; row++) {
    const head = Math.floor(row / queries);
    const kv = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
    const { begin, end } = visibleKeys(problem, shape, row % queries);
    const scoresOf = (first: number, last: number) => {
      const scores: number[] = [];
      for (let j = first; j < last; j++) {
        let dot = 0;
        for (let t = 0; t < qkDim; t++)
          dot = add(dot, q[row * qkDim + t] * k[(kv * keys + j) * qkDim + t], t);
        const scaled = working(dot) * problem.scale;
        scores.push(
          problem.softcap === null ? scaled : problem.softcap * Math.tanh(scaled / problem.softcap),
        );
      }
      return scores;
    };
    /** What is subtracted from all scores, where that is known before any weight. */
    const known = () => {
      if (maximum === 'none') return 0;
      const scores = scoresOf(begin, end);
      const largest = scores.reduce((most, x) => Math.max(most, x), -Infinity);
      if (maximum === 'row') return largest - liberties.lag(row) * Math.LN2;
      let total = 0;
      for (const score of scores) total = working(total + exponential(score - largest));
      return largest + Math.log(total);
    };
    let reference = maximum === 'running' || begin >= end ? -Infinity : known();
    let total = 0;
    const sums = new Float64Array(vDim);
    const firsts: number[] = [];
    for (let first = begin; first < end; first += liberties.tile) firsts.push(first);
    if (liberties.order === 'descending') firsts.reverse();
    for (const first of firsts) {
      const scores = scoresOf(first, Math.min(end, first + liberties.tile));
      const largest = Math.max(...scores) - liberties.lag(row) * Math.LN2;
      if (maximum === 'running' && largest > reference) {
        const factor = reference === -Infinity ? 0 : Math.exp(reference - largest);
        total *= factor;
        for (let c = 0; c < vDim; c++) sums[c] *= factor;
        reference = largest;
      }
      scores.forEach((score, i) => {
        const p = working(exponential(score - reference));
        const rounded = round(weightFormat, working(p * weightScale));
        total = working(total + p);
        for (let c = 0; c < vDim; c++)
          sums[c] = add(sums[c], rounded * v[(kv * keys + first + i) * vDim + c], i);
      });
      if (sumsTruncate) for (let c = 0; c < vDim; c++) sums[c] = truncateToFloat32(sums[c]);
    }
    if (end > begin)
      for (let c = 0; c < vDim; c++) out[row * vDim + c] = working(sums[c] / (total * weightScale));
    lse[row] = end > begin ? reference + Math.log(total) : -Infinity;
  }
  return {
    out: encode(out, liberties.outputFormat, [batch, heads, queries, vDim]),
    lse: encode(lse, problem.q.format === 'fp64' ? 'fp64' : 'fp32', [batch, heads, queries]),
  };
}
