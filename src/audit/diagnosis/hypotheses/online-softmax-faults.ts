import { type FormatName, formats, round, type RoundingMode } from '../../../formats/index.js';
import { predictWeighted, type WeightedRow } from '../prediction.js';
import { exp2Coefficients } from '../../../../kernels/index.js';
import type { Hypothesis, HypothesisContext, HypothesisFamily, SampleRow } from '../hypothesis.js';

/** The order in which a kernel visits the blocks of keys. */
export type BlockOrder = 'first to last' | 'last to first';

/** The ways in which an online softmax may go wrong; it does right what is left out. */
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
  /** The sums, of O and the row sum, that are rescaled when the maximum grows; default both. */
  readonly rescaled?: 'output' | 'sum' | 'neither';
  /** O is rescaled by the factor of the block before. */
  readonly lateRescale?: boolean;
  /** The value of P where the score is exactly the running maximum, x = 0; default 1. */
  readonly atMaximum?: number;
  /** The exponential: the result for 2^x relative to the exact one, by x's fraction in [0, 1). */
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
 * The weights with which a kernel that computes `scores` (natural, −∞ where masked) block by block takes the
 * rows of `values`, and its LSE; in fp64 except for P's rounding. The weights of a correct online softmax are
 * those of the softmax. Without keys all weights are zero and the LSE is −∞.
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

/** A fault of an online softmax, for every block size and order. */
interface OnlineFault {
  readonly id: string;
  readonly technique: string;
  readonly statement: string;
  readonly law: Omit<OnlineSoftmax, 'block' | 'order'>;
  /** The part of the law that rounds P in a sound kernel too; absent where the law rounds nothing. */
  readonly sound?: Omit<OnlineSoftmax, 'block' | 'order'>;
  /** Whether one block over all keys shows it too; such a fault does not hang on the block size. */
  readonly inOneBlock: boolean;
}

/** Keys of a block. */
export const blockSizes = [16, 32, 64, 128, 256] as const;
/** Orders in which blocks are visited. */
export const orders: readonly BlockOrder[] = ['last to first', 'first to last'];

/** Faults of the rescales, which give a block of keys one factor. */
export const rescaleFaults: readonly OnlineFault[] = [
  {
    id: 'output-not-rescaled',
    technique: 'rescale',
    statement: 'O is not rescaled when the maximum grows, while the row sum is rescaled',
    law: { rescaled: 'sum' },
    inOneBlock: false,
  },
  {
    id: 'sum-not-rescaled',
    technique: 'rescale',
    statement: 'the row sum is not rescaled when the maximum grows, while O is rescaled',
    law: { rescaled: 'output' },
    inOneBlock: false,
  },
  {
    id: 'never-rescaled',
    technique: 'rescale',
    statement: 'neither O nor the row sum is rescaled when the maximum grows',
    law: { rescaled: 'neither' },
    inOneBlock: false,
  },
  {
    id: 'late-rescale',
    technique: 'rescale',
    statement: 'O is rescaled by the factor of the block before',
    law: { lateRescale: true },
    inOneBlock: false,
  },
];

/** Differences of a cubic for 2^f on [0, 1) where the range reduction makes f lie in [−1/2, 1/2]. */
function roundedReduction(fraction: number): number {
  const f = fraction < 0.5 ? fraction : fraction - 1;
  const [c0, c1, c2, c3] = exp2Coefficients[3] as [number, number, number, number];
  return (c0 + f * (c1 + f * (c2 + f * c3))) / 2 ** f;
}

const exponentialFaults: readonly OnlineFault[] = [
  {
    id: 'exponent-at-integers',
    technique: 'exp2-polynomial',
    statement: 'the exponential is half of what it should be at the row maximum, where x is 0',
    law: { atMaximum: 0.5 },
    inOneBlock: true,
  },
  {
    id: 'exponent-at-integers',
    technique: 'exp2-polynomial',
    statement: 'the exponential is twice what it should be at the row maximum, where x is 0',
    law: { atMaximum: 2 },
    inOneBlock: true,
  },
  {
    id: 'range-reduction-rounds-to-nearest',
    technique: 'exp2-polynomial',
    statement:
      "the exponential's range reduction rounds to nearest, not down, so that its polynomial leaves its interval",
    law: { exponential: roundedReduction },
    inOneBlock: true,
  },
];

/**
 * Exponents of the power of two that the largest P of an 8-bit format may be multiplied by, and lags up to which a maximum may go
 * stale.
 */
const eightBitScalings = [
  { offset: 8, lag: 4 },
  { offset: 8, lag: 8 },
  { offset: 0, lag: 8 },
  { offset: 0, lag: 16 },
] as const;

/** Octaves beyond the largest binade of a format to which a factor takes P that is too large. */
const excessiveOctaves = [1, 2, 4] as const;

function weightFaults(format: FormatName): OnlineFault[] {
  const short = format === 'bf16' || format === 'fp16';
  const eight = format === 'e4m3' || format === 'e5m2';
  const truncated: OnlineFault = {
    id: 'weights-truncated',
    technique: 'p-round',
    statement: `P is truncated to ${format}, not rounded`,
    law: { weights: format, rounding: 'toward-zero' },
    sound: { weights: format },
    inOneBlock: true,
  };
  const saturated = eightBitScalings.map(({ offset, lag }): OnlineFault => {
    const shift = offset === 0 ? '' : ` after a shift by 2^${offset}`;
    return {
      id: 'stale-maximum-saturates',
      technique: 'p-round',
      statement: `P saturates in ${format}${shift}, since the maximum may lag by 2^${lag}, and the row sum does not`,
      law: { weights: format, offset, lag },
      sound: { weights: format, offset },
      inOneBlock: false,
    };
  });
  const frozen: OnlineFault = {
    id: 'frozen-maximum',
    technique: 'p-round',
    statement: `the maximum of the first block is never replaced, and P saturates in ${format}`,
    law: { weights: format, frozenMaximum: true },
    sound: { weights: format },
    inOneBlock: false,
  };
  // The factor's usual exponent in kernels.
  const raised = 8;
  const excessive = excessiveOctaves.map((octaves): OnlineFault => {
    const offset = Math.floor(Math.log2(formats[format].maxFinite)) + octaves;
    return {
      id: 'weights-saturate',
      technique: 'p-round',
      statement: `P is multiplied by 2^${offset} and saturates in ${format}, whose largest number is ${formats[format].maxFinite}, and the row sum does not`,
      law: { weights: format, offset },
      sound: { weights: format, offset: raised },
      inOneBlock: true,
    };
  });
  const underflowing: OnlineFault = {
    id: 'weights-underflow',
    technique: 'p-round',
    statement: `small P become zero in ${format} for want of a scale, and the row sum counts them`,
    law: { weights: format },
    sound: { weights: format, offset: 8 },
    inOneBlock: true,
  };
  if (eight)
    return [
      ...saturated,
      frozen,
      {
        ...frozen,
        law: { ...frozen.law, offset: raised },
        sound: { weights: format, offset: raised },
      },
      ...excessive,
      underflowing,
      truncated,
      {
        ...truncated,
        law: { ...truncated.law, offset: 8 },
        sound: { weights: format, offset: 8 },
      },
    ];
  return short ? [truncated, frozen] : [];
}

/** A fault as a hypothesis, for one block size and order. */
export function onlineHypothesis(
  { reader }: HypothesisContext,
  { id, technique, statement, law, sound }: OnlineFault,
  block: number,
  order: BlockOrder,
  blocks: string,
): Hypothesis {
  const run = (row: SampleRow, of: OnlineFault['law']) => {
    const scores = reader.scores(row.row);
    const values = reader.valuesOf(row.row, row.kv);
    return predictWeighted(row, runOnlineSoftmax(scores, values, { block, order, ...of }));
  };
  return {
    id,
    technique,
    statement: `${statement}${blocks}`,
    cause: statement,
    predict: (row) => run(row, law),
    ...(sound === undefined ? {} : { sound: (row) => run(row, sound).out }),
  };
}

/** A kind of fault as hypotheses, by block size and order. */
function* byBlocks(context: HypothesisContext, fault: OnlineFault): Generator<Hypothesis> {
  const { keys } = context.shape;
  if (fault.inOneBlock) yield onlineHypothesis(context, fault, keys, 'first to last', '');
  for (const block of blockSizes)
    for (const order of block < keys ? orders : [])
      yield onlineHypothesis(context, fault, block, order, ` (blocks of ${block} keys, ${order})`);
}

/** Faults of the running maximum, of the rescales and of P, by block size and order. */
export const onlineSoftmaxHypotheses: HypothesisFamily = function* (context) {
  const ofWeights = weightFaults(context.reader.problem.v.format);
  for (const fault of [...rescaleFaults, ...exponentialFaults, ...ofWeights])
    yield* byBlocks(context, fault);
};
