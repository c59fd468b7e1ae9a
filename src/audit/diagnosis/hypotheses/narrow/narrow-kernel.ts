import type { KeyRange } from '../../../../problem/index.js';
import type { Rounder } from '../../../premises/declared-row.js';
import type { BlockOrder } from '../online-softmax-faults.js';

/** The places where a kernel rounds to a short format; where a rounder is left out, numbers are kept in fp64. */
export interface NarrowKernel {
  readonly block: number;
  readonly order: BlockOrder;
  /** Number of stretches of keys that are computed apart and combined by their LSE; default 1. */
  readonly splits?: number;
  readonly weights: Rounder;
  /** P is multiplied by 2^offset before its rounding; default 0. */
  readonly offset?: number;
  /** The rounding of the argument of 2^x. */
  readonly exponent?: Rounder;
  /** The rounding of O, after every key or after every block. */
  readonly accumulator?: Rounder;
  /** The row sum likewise. */
  readonly sum?: Rounder;
  readonly every?: 'key' | 'block';
  /** The rounding of the factor that O is rescaled by. */
  readonly rescale?: Rounder;
  readonly reciprocal?: Rounder;
  /** The rounding of the result that a split hands on. */
  readonly partial?: Rounder;
}

/** Results of one row. */
export interface NarrowRow {
  readonly out: Float64Array;
  readonly lse: number;
  /** Of each split: Σ P V before it is divided. */
  readonly sums: readonly Float64Array[];
}

/** The weights of a block's visible keys. */
interface BlockWeights {
  readonly keys: Int32Array;
  readonly weights: Float64Array;
  count: number;
}

/** Adds the values of a block's keys to the sums in their order, and rounds these after each where `ofKey` is given. */
function addValues(
  out: Float64Array,
  values: Float64Array,
  { keys, weights, count }: BlockWeights,
  ofKey: Rounder | undefined,
): void {
  const dim = out.length;
  let at = 0;
  // Four keys at once: a sum stays in a register, and the loads of its terms do not wait for it.
  for (; at + 4 <= count; at += 4) {
    const first = keys[at] * dim;
    const second = keys[at + 1] * dim;
    const third = keys[at + 2] * dim;
    const fourth = keys[at + 3] * dim;
    const w0 = weights[at];
    const w1 = weights[at + 1];
    const w2 = weights[at + 2];
    const w3 = weights[at + 3];
    if (ofKey === undefined)
      for (let c = 0; c < dim; c++)
        out[c] =
          out[c] +
          w0 * values[first + c] +
          w1 * values[second + c] +
          w2 * values[third + c] +
          w3 * values[fourth + c];
    else
      for (let c = 0; c < dim; c++) {
        const one = ofKey(out[c] + w0 * values[first + c]);
        const two = ofKey(one + w1 * values[second + c]);
        const three = ofKey(two + w2 * values[third + c]);
        out[c] = ofKey(three + w3 * values[fourth + c]);
      }
  }
  for (; at < count; at++) {
    const from = keys[at] * dim;
    const w = weights[at];
    for (let c = 0; c < dim; c++) {
      const sum = out[c] + w * values[from + c];
      out[c] = ofKey === undefined ? sum : ofKey(sum);
    }
  }
}

/** The values of a row's keys, and the sums Σ P V of a split where they are known. */
interface SplitValues {
  readonly values: Float64Array;
  readonly vDim: number;
  readonly known: Float64Array | undefined;
}

function runSplit(
  scores: Float64Array,
  { values, vDim, known }: SplitValues,
  law: NarrowKernel,
  { begin, end }: KeyRange,
): NarrowRow {
  const { block, weights, exponent, accumulator, rescale, every } = law;
  const scaleUp = 2 ** (law.offset ?? 0);
  const ofKey = every === 'key' ? accumulator : undefined;
  const sumOfKey = every === 'key' ? law.sum : undefined;
  const out = new Float64Array(vDim);
  const most = Math.min(block, end - begin);
  const ofBlock = { keys: new Int32Array(most), weights: new Float64Array(most), count: 0 };
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
    ofBlock.count = 0;
    for (let j = first; j < last; j++) {
      if (scores[j] === -Infinity) continue;
      const x = (scores[j] - maximum) * Math.LOG2E;
      const p = 2 ** (exponent === undefined ? x : exponent(x));
      sum += p;
      if (sumOfKey !== undefined) sum = sumOfKey(sum);
      ofBlock.keys[ofBlock.count] = j;
      ofBlock.weights[ofBlock.count++] = weights(p * scaleUp) / scaleUp;
    }
    if (law.sum !== undefined && sumOfKey === undefined) sum = law.sum(sum);
    if (known !== undefined) continue;
    if (ofOutput !== 1) for (let c = 0; c < vDim; c++) out[c] *= ofOutput;
    addValues(out, values, ofBlock, ofKey);
    if (accumulator !== undefined && ofKey === undefined)
      for (let c = 0; c < vDim; c++) out[c] = accumulator(out[c]);
  }
  const sums = known ?? out;
  if (maximum === -Infinity) return { out: sums, lse: -Infinity, sums: [sums] };
  const inverse = law.reciprocal === undefined ? 1 / sum : law.reciprocal(1 / sum);
  return { out: sums.map((x) => x * inverse), lse: maximum + Math.log(sum), sums: [sums] };
}

/**
 * Runs an online softmax over `scores` (natural, −∞ where masked) that rounds where the law says so, and
 * in fp64 elsewhere.
 * @param known Σ P V of each split, as another run of a law that sums them alike gave them
 */
export function runNarrowKernel(
  scores: Float64Array,
  values: Float64Array,
  vDim: number,
  law: NarrowKernel,
  known: readonly Float64Array[] = [],
): NarrowRow {
  const { splits = 1, partial } = law;
  const keys = scores.length;
  const size = splits === 1 ? keys : Math.ceil(keys / splits);
  const parts: NarrowRow[] = [];
  for (let begin = 0; begin < keys; begin += size) {
    const ofSplit = { values, vDim, known: known[parts.length] };
    parts.push(runSplit(scores, ofSplit, law, { begin, end: Math.min(begin + size, keys) }));
  }
  if (splits === 1) return parts[0];
  const sums = parts.flatMap((part) => part.sums);
  const largest = Math.max(...parts.map(({ lse }) => lse));
  if (largest === -Infinity) return { ...parts[0], sums };
  const lse = largest + Math.log(parts.reduce((sum, one) => sum + Math.exp(one.lse - largest), 0));
  const out = new Float64Array(vDim);
  for (const part of parts) {
    const weight = Math.exp(part.lse - lse);
    for (let c = 0; c < vDim; c++) {
      const x = part.out[c];
      out[c] += weight * (partial === undefined ? x : partial(x));
    }
  }
  return { out, lse, sums };
}
