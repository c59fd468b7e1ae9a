import { exp2Coefficients } from '../../../../kernels/index.js';
import type { FormatName } from '../../../formats/index.js';
import type { Hypothesis, HypothesisContext, HypothesisFamily, SampleRow } from '../hypothesis.js';
import { predictWeighted } from '../prediction.js';
import { runOnlineSoftmax, type BlockOrder, type OnlineSoftmax } from './online-softmax.js';

/** A fault of an online softmax, for every block size and order. */
interface OnlineFault {
  readonly id: string;
  readonly technique: string;
  readonly statement: string;
  readonly law: Omit<OnlineSoftmax, 'block' | 'order'>;
  /** What of the law rounds P in a sound kernel too; nothing where the law rounds nothing. */
  readonly sound?: Omit<OnlineSoftmax, 'block' | 'order'>;
  /** Whether one block over all keys shows it too; such a fault does not hang on the block size. */
  readonly inOneBlock: boolean;
}

const blockSizes = [16, 32, 64, 128, 256] as const;
const orders: readonly BlockOrder[] = ['last to first', 'first to last'];

const rescaleFaults: readonly OnlineFault[] = [
  {
    id: 'output-not-rescaled',
    technique: 'rescale',
    statement: 'O is not rescaled when the maximum grows, the row sum is',
    law: { rescaled: 'sum' },
    inOneBlock: false,
  },
  {
    id: 'sum-not-rescaled',
    technique: 'rescale',
    statement: 'the row sum is not rescaled when the maximum grows, O is',
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

/** How far below 1 the largest P of a format may be shifted up, and how long a maximum may go stale. */
const eightBitScalings = [
  { offset: 8, lag: 4 },
  { offset: 8, lag: 8 },
  { offset: 0, lag: 8 },
  { offset: 0, lag: 16 },
] as const;

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

function hypothesis(
  { reader }: HypothesisContext,
  { id, technique, statement, law, sound }: OnlineFault,
  block: number,
  order: BlockOrder,
  blocks: string,
): Hypothesis {
  const run = (row: SampleRow, of: OnlineFault['law']) => {
    const scores = reader.scores(row.row);
    const values = reader.values(row.kv);
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

/** Faults of the running maximum, of the rescales and of P, by block size and order. */
export const onlineSoftmaxHypotheses: HypothesisFamily = function* (context) {
  const { shape, reader } = context;
  const faults = [...rescaleFaults, ...exponentialFaults, ...weightFaults(reader.problem.v.format)];
  for (const fault of faults) {
    if (fault.inOneBlock) yield hypothesis(context, fault, shape.keys, 'first to last', '');
    for (const block of blockSizes)
      for (const order of block < shape.keys ? orders : [])
        yield hypothesis(context, fault, block, order, ` (blocks of ${block} keys, ${order})`);
  }
};
