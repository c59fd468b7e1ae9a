import type { Rounder } from '../../premises/quick-rounding.js';
import type { BlockOrder } from './online-softmax.js';

/** Where a kernel rounds to a short format; what is left out is kept in fp64. */
export interface NarrowKernel {
  readonly block: number;
  readonly order: BlockOrder;
  /** Stretches of keys computed apart and combined by their LSE; default 1. */
  readonly splits?: number;
  readonly weights: Rounder;
  /** P is multiplied by 2^offset before its rounding; default 0. */
  readonly offset?: number;
  /** The argument of 2^x. */
  readonly exponent?: Rounder;
  /** O, after every key or after every block. */
  readonly accumulator?: Rounder;
  /** The row sum likewise. */
  readonly sum?: Rounder;
  readonly every?: 'key' | 'block';
  /** The factor that O is rescaled by. */
  readonly rescale?: Rounder;
  readonly reciprocal?: Rounder;
  /** What a split hands on. */
  readonly partial?: Rounder;
}

/** What comes out for one row. */
export interface NarrowRow {
  readonly out: Float64Array;
  readonly lse: number;
}

function runSplit(
  scores: Float64Array,
  values: Float64Array,
  vDim: number,
  law: NarrowKernel,
  begin: number,
  end: number,
): NarrowRow {
  const { block, weights, exponent, accumulator, rescale, every } = law;
  const scaleUp = 2 ** (law.offset ?? 0);
  const ofKey = every === 'key' ? accumulator : undefined;
  const sumOfKey = every === 'key' ? law.sum : undefined;
  const out = new Float64Array(vDim);
  let maximum = -Infinity;
  let sum = 0;
  const blocks = Math.ceil((end - begin) / block);
  for (let visit = 0; visit < blocks; visit++) {
    const index = law.order === 'first to last' ? visit : blocks - 1 - visit;
    const first = begin + index * block;
    const last = Math.min(first + block, end);
    let largest = maximum;
    for (let j = first; j < last; j++) if (scores[j] > largest) largest = scores[j];
    if (largest === -Infinity) continue;
    const factor = maximum === -Infinity ? 0 : Math.exp(maximum - largest);
    const ofOutput = rescale === undefined ? factor : rescale(factor);
    maximum = largest;
    sum *= factor;
    if (ofOutput !== 1) for (let c = 0; c < vDim; c++) out[c] *= ofOutput;
    for (let j = first; j < last; j++) {
      if (scores[j] === -Infinity) continue;
      const x = (scores[j] - maximum) * Math.LOG2E;
      const p = 2 ** (exponent === undefined ? x : exponent(x));
      sum += p;
      if (sumOfKey !== undefined) sum = sumOfKey(sum);
      const w = weights(p * scaleUp) / scaleUp;
      const from = j * vDim;
      if (ofKey === undefined) for (let c = 0; c < vDim; c++) out[c] += w * values[from + c];
      else for (let c = 0; c < vDim; c++) out[c] = ofKey(out[c] + w * values[from + c]);
    }
    if (accumulator !== undefined && ofKey === undefined)
      for (let c = 0; c < vDim; c++) out[c] = accumulator(out[c]);
    if (law.sum !== undefined && sumOfKey === undefined) sum = law.sum(sum);
  }
  if (maximum === -Infinity) return { out, lse: -Infinity };
  const inverse = law.reciprocal === undefined ? 1 / sum : law.reciprocal(1 / sum);
  return { out: out.map((x) => x * inverse), lse: maximum + Math.log(sum) };
}

/**
 * Runs an online softmax over `scores` (natural, −∞ where masked) that rounds where the law says so, and
 * in fp64 elsewhere.
 */
export function runNarrowKernel(
  scores: Float64Array,
  values: Float64Array,
  vDim: number,
  law: NarrowKernel,
): NarrowRow {
  const { splits = 1, partial } = law;
  const keys = scores.length;
  if (splits === 1) return runSplit(scores, values, vDim, law, 0, keys);
  const size = Math.ceil(keys / splits);
  const parts: NarrowRow[] = [];
  for (let begin = 0; begin < keys; begin += size)
    parts.push(runSplit(scores, values, vDim, law, begin, Math.min(begin + size, keys)));
  const largest = Math.max(...parts.map(({ lse }) => lse));
  if (largest === -Infinity) return parts[0];
  const lse = largest + Math.log(parts.reduce((sum, one) => sum + Math.exp(one.lse - largest), 0));
  const out = new Float64Array(vDim);
  for (const part of parts) {
    const weight = Math.exp(part.lse - lse);
    for (let c = 0; c < vDim; c++) {
      const x = part.out[c];
      out[c] += weight * (partial === undefined ? x : partial(x));
    }
  }
  return { out, lse };
}
