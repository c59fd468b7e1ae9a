import { decode, formats } from '../../src/formats/index.js';
import { conversions } from '../../src/hardware/index.js';
import { roundingConversions } from '../online-softmax/formats.js';
import { variant, type KernelVariant } from './variant.js';

/** Bugs of the scores and their scale. */
export const scoreVariants: readonly KernelVariant[] = [
  variant(
    {
      id: 'score-overflow-nan',
      title: 'Scores are rounded to 16 bits before the softmax',
      source: 'pytorch/pytorch #119131',
      mechanism:
        'Raw scores are kept in the format of the output. One that overflows is the maximum, and ∞ − ∞ is NaN; short of that, large scores lose their low bits.',
      visibleWhen:
        'scores beyond the largest finite number: 65504 for fp16, 3.4e38 for bf16; large ones by their rounding',
    },
    {
      steps: ({ configuration }) => {
        const conversion = conversions[roundingConversions[configuration.outFormat]];
        return {
          score: (bits) => decode(formats[configuration.outFormat], conversion.evaluate(bits)),
        };
      },
    },
  ),
  variant(
    {
      id: 'scale-twice',
      title: 'The softmax scale is applied twice',
      mechanism: 'Scores are scaled once as Q is read and once more in the exponent.',
      visibleWhen: 'a scale other than 1',
    },
    { scale: (scale, softmaxScale) => Math.fround(scale * Math.fround(softmaxScale)) },
  ),
];
