import { decode, encode, formats } from '../../../src/formats/index.js';
import { conversions } from '../../../src/hardware/index.js';
import { roundingConversions } from '../../online-softmax/units.js';
import { type KernelVariant, variant } from './variant.js';
import { addFloat32 } from '../../../src/arith/index.js';

const { fp32 } = formats;

/** Bugs of the rounding of P, and of its product with V. */
export const weightVariants: readonly KernelVariant[] = [
  variant(
    {
      id: 'p-truncated',
      title: 'P is truncated in place of rounded',
      mechanism:
        'P goes to the format of the inputs by rounding toward zero. The row sum is of P before, so that outputs shrink by half an ulp of P on average.',
      visibleWhen: 'any input; tell by the slope of the output, or by V of one sign',
    },
    {
      steps: ({ format }) => ({
        weight: (p) =>
          encode(formats[format], p, { rounding: 'toward-zero', overflow: 'saturate' }),
      }),
    },
  ),
  variant(
    {
      id: 'p-rounded-before-sum',
      title: 'P is rounded before the row sum in masked blocks, after it in others',
      mechanism:
        'Two paths of the softmax disagree on whether the denominator sees P or the rounded P; rows with masked blocks mix both. The first block visited takes the path of masked ones.',
      visibleWhen: 'any input, by the LSE; the output is no worse',
    },
    {
      steps: ({ kernel, format }) => ({
        rowSum: (start, weights, block) =>
          kernel.rowSum(
            start,
            block.isMasked || block.index === 0
              ? weights.map((p) => decode(formats[format], kernel.weight(p, block)))
              : weights,
            block,
          ),
      }),
    },
  ),
  variant(
    {
      id: 'biased-p-rounding',
      title: 'The product of P and V leaves the accumulator in 16 bits',
      source: 'arXiv 2510.04212',
      mechanism:
        'The unnormalised O is rounded to 16 bits after every block. With several equal maxima their P is exactly 1: sums of as many V of one sign lie on or near midpoints, which the small weights push over to the same side every time. The error is a bias, not noise.',
      visibleWhen:
        'rows with repeated maxima and V of one sign; the mean signed error shows it, the largest does not',
    },
    {
      steps: ({ configuration }) => {
        const conversion = conversions[roundingConversions[configuration.outFormat]];
        const format = formats[configuration.outFormat];
        return { accumulated: (bits) => encode(fp32, decode(format, conversion.evaluate(bits))) };
      },
    },
  ),
];

/** Number of columns in every eight whose accumulators take part. */
const reducedLanes = 4;

/** The row sum over the first two of the four packed accumulators. */
function partialRowSum(start: number, weights: readonly number[]): number {
  const lanes = [start, 0, 0, 0];
  weights.forEach((p, j) => {
    if (j % 8 < reducedLanes) lanes[j % 8] = addFloat32(lanes[j % 8], p);
  });
  return addFloat32(addFloat32(lanes[0], lanes[2]), addFloat32(lanes[1], lanes[3]));
}

/** Bugs of the row sum and of its use at the end. */
export const sumVariants: readonly KernelVariant[] = [
  variant(
    {
      id: 'uniform-scale-error',
      title: 'The row sum is reduced over half of the lanes',
      source: 'flashinfer-ai/flashinfer #3838',
      mechanism:
        'A step of the reduction is left out, so that the row sum has every other four columns only. Where keys are alike the output is off by a factor of 2 and the LSE by ln 2, the same everywhere.',
      visibleWhen: 'any input; cosine similarity does not see it',
    },
    { steps: () => ({ rowSum: partialRowSum }) },
  ),
  variant(
    {
      id: 'reciprocal-before-last-block',
      title: '1 / l is taken before the last block is summed',
      mechanism:
        'The output is divided by the row sum as it was before the last block visited, the first keys, was added; the LSE has all of it.',
      visibleWhen: 'any row that sees keys of the last block visited',
    },
    { steps: ({ kernel }) => ({ normaliser: (_sum, start) => kernel.normaliser(start, start) }) },
  ),
  variant(
    {
      id: 'lse-base-2',
      title: 'The LSE is a binary logarithm',
      mechanism: 'The last factor, ln 2, is left out.',
      visibleWhen: 'any row with keys; tell by the LSE',
    },
    { steps: () => ({ logSumExp: (logSumExp2) => logSumExp2 }) },
  ),
  variant(
    {
      id: 'lse-plus-inf',
      title: 'Rows without keys have LSE +∞',
      source: 'Dao-AILab/flash-attention #978',
      mechanism: 'The LSE of a row that sees no key is set to +∞ in place of −∞.',
      visibleWhen: 'causal with more queries than keys',
    },
    {
      steps: ({ kernel }) => ({
        logSumExp2: (maximum, sum) =>
          sum === 0 || Number.isNaN(sum) ? Infinity : kernel.logSumExp2(maximum, sum),
      }),
    },
  ),
];

/** Bugs of the split-KV combine. */
export const splitVariants: readonly KernelVariant[] = [
  variant(
    {
      id: 'empty-split',
      title: 'An empty split poisons the combine',
      mechanism:
        'A split without blocks writes no partial output. Its weight is 0, but the combine multiplies whatever memory holds by it, here NaN. The LSE is right.',
      visibleWhen: 'more splits than blocks of keys',
      settings: { splits: '4' },
      objection: ({ splits }) =>
        splits < 2 ? 'there is nothing to combine; give splits 2 or more' : null,
    },
    { combine: { readsSplit: () => true } },
  ),
];
