import { type KernelVariant, variant } from './variant.js';
import { fa4Formats } from '../configuration.js';

/** The block that is loaded after one, into the same stage of the ring; the last has none. */
const nextBlock = (index: number, blocks: number): number => Math.min(index + 1, blocks - 1);

/** Bugs in the places that operands are read from. */
export const operandVariants: readonly KernelVariant[] = [
  variant(
    {
      id: 'wrong-kv-head',
      title: 'Query heads read the wrong kv head',
      mechanism:
        'Head h reads kv head h mod kvHeads in place of ⌊h / groupSize⌋: groups are taken for interleaved.',
      visibleWhen: 'fewer kv heads than query heads, and more than one kv head',
    },
    {
      paths: {
        kvHead: (head, { heads, kvHeads }) =>
          Math.floor(head / heads) * kvHeads + ((head % heads) % kvHeads),
      },
    },
  ),
  variant(
    {
      id: 'ring-refilled-keys',
      title: 'K is read while its stage is refilled',
      mechanism:
        'The producer does not wait for the reader: the product finds the K of the block that is loaded next, with the V and the mask of its own.',
      visibleWhen: 'two or more blocks of keys; on a GPU it depends on timing',
    },
    { paths: { keysFrom: nextBlock } },
  ),
  variant(
    {
      id: 'ring-refilled-values',
      title: 'V is read while its stage is refilled',
      mechanism:
        'The producer does not wait for the reader: the product finds the V of the block that is loaded next, with the weights of its own.',
      visibleWhen: 'two or more blocks of keys; on a GPU it depends on timing. The LSE is right',
    },
    { paths: { valuesFrom: nextBlock } },
  ),
];

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
