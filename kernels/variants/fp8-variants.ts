import { fa4Formats } from '../fa4/formats.js';
import { variant, type KernelVariant } from './variant.js';

const onlyFp8: KernelVariant['objection'] = (_, format) =>
  fa4Formats[format].bits === 8 ? null : `q is ${format}; give e4m3 or e5m2`;

/**
 * Bugs of the fp8 forward. Both are configurations that the kernel once had, or that another has: the
 * steps are FlashAttention-4's.
 */
export const fp8Variants: readonly KernelVariant[] = [
  variant(
    {
      id: 'fp8-lazy-saturation',
      title: 'A lagging maximum lets P saturate',
      source: 'Dao-AILab/flash-attention #2131, #2577, #2713, #2716',
      mechanism:
        'With exponents raised by 8 and rescales skipped up to 4, P reaches 2^12 and saturates at the 448 of e4m3, while the fp32 row sum has it whole: outputs shrink, the LSE stays exact.',
      visibleWhen: "e4m3, a row's maximum grows from block to block by less than a factor of 16",
      settings: { maxOffset: '8', 'rescale.threshold': '4' },
      objection: onlyFp8,
    },
    {},
  ),
  variant(
    {
      id: 'fp8-p-underflow',
      title: 'P goes to fp8 without a scale',
      source: 'ROCm/FlyDSL #1020',
      mechanism:
        'P is at most 1, and what is below half the smallest subnormal of fp8 becomes 0; the row sum, taken before, counts it.',
      visibleWhen: 'long rows with many small weights; V = 1 gives less than 1',
      settings: { maxOffset: '0' },
      objection: onlyFp8,
    },
    {},
  ),
];
