import { formats, round, type FormatName, type RoundingMode } from '../../../formats/index.js';
import type { WeightedRow } from '../prediction.js';

/** In which order a kernel visits the blocks of keys. */
export type BlockOrder = 'first to last' | 'last to first';

/** How an online softmax may go wrong; what is left out is right. */
export interface OnlineSoftmax {
  readonly block: number;
  readonly order: BlockOrder;
  /** The running maximum is kept while it lags by at most this much, in log2 units; default 0. */
  readonly lag?: number;
  /** The maximum of the first block with visible keys is never replaced. */
  readonly frozenMaximum?: boolean;
  /** P is multiplied by 2^offset before it is rounded; default 0. */
  readonly offset?: number;
  /** The format that P is rounded to; left in fp64 without. */
  readonly weights?: FormatName;
  readonly rounding?: RoundingMode;
  /** Whether the row sum takes P after its rounding; default no. */
  readonly sumRounded?: boolean;
  /** Which of O and the row sum are rescaled when the maximum grows; default both. */
  readonly rescaled?: 'output' | 'sum' | 'neither';
  /** O is rescaled by the factor of the block before. */
  readonly lateRescale?: boolean;
  /** P where the score is the running maximum exactly, x = 0, is this; default 1. */
  readonly atMaximum?: number;
  /** The exponential: what 2^x comes out as relative to what it should be, by x's fraction in [0, 1). */
  readonly exponential?: (fraction: number) => number;
}

/** Blocks of keys with at least one visible key, in the order they are visited. */
function visitedBlocks(scores: Float64Array, block: number, order: BlockOrder): number[] {
  const firsts: number[] = [];
  for (let first = 0; first < scores.length; first += block)
    if (scores.subarray(first, first + block).some((s) => s !== -Infinity)) firsts.push(first);
  return order === 'first to last' ? firsts : firsts.reverse();
}

/**
 * The weights with which a kernel that computes `scores` (natural, −∞ where masked) block by block
 * takes the rows of `values`, and its LSE; in fp64 but for P's rounding. The weights of a correct
 * online softmax are those of the softmax. Without keys all is zero and the LSE −∞.
 */
export function runOnlineSoftmax(
  scores: Float64Array,
  values: Float64Array,
  law: OnlineSoftmax,
): WeightedRow {
  const { block, order, lag = 0, offset = 0, atMaximum = 1, exponential } = law;
  const weights = new Float64Array(scores.length);
  const scaleUp = 2 ** offset;
  let maximum = -Infinity;
  let sum = 0;
  let previousFactor = 1;
  const done: number[] = [];
  for (const first of visitedBlocks(scores, block, order)) {
    const end = Math.min(first + block, scores.length);
    let largest = maximum;
    for (let j = first; j < end; j++) largest = Math.max(largest, scores[j]);
    const rise = (largest - maximum) * Math.LOG2E;
    const keep = maximum !== -Infinity && (rise <= lag || law.frozenMaximum === true);
    const next = keep ? maximum : largest;
    const factor = maximum === -Infinity ? 1 : Math.exp(maximum - next);
    const ofOutput =
      law.rescaled === 'sum' || law.rescaled === 'neither'
        ? 1
        : law.lateRescale === true
          ? previousFactor
          : factor;
    const ofSum = law.rescaled === 'output' || law.rescaled === 'neither' ? 1 : factor;
    if (ofOutput !== 1)
      for (const start of done)
        for (let j = start; j < Math.min(start + block, scores.length); j++) weights[j] *= ofOutput;
    sum *= ofSum;
    previousFactor = factor;
    maximum = next;
    for (let j = first; j < end; j++) {
      if (scores[j] === -Infinity) continue;
      const x = (scores[j] - maximum) * Math.LOG2E;
      const exact = scores[j] === maximum ? atMaximum : 2 ** x;
      const p = exact * (exponential === undefined ? 1 : exponential(x - Math.floor(x)));
      const rounded =
        law.weights === undefined
          ? p
          : round(formats[law.weights], p * scaleUp, {
              rounding: law.rounding ?? 'nearest-even',
              overflow: 'saturate',
            }) / scaleUp;
      weights[j] = rounded;
      sum += law.sumRounded === true ? rounded : p;
    }
    done.push(first);
  }
  if (maximum === -Infinity) return { weights, values, lse: -Infinity };
  return { weights: weights.map((w) => w / sum), values, lse: maximum + Math.log(sum) };
}
