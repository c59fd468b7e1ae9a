import { variant, type KernelVariant } from './variant.js';

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
