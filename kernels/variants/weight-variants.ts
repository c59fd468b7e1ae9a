import { decode, encode, formats } from '../../src/formats/index.js';
import { conversions } from '../../src/hardware/index.js';
import { roundingConversions } from '../online-softmax/formats.js';
import { variant, type KernelVariant } from './variant.js';

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
