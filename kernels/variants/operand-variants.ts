import { variant, type KernelVariant } from './variant.js';

/** The block that is loaded after one, into the same stage of the ring; the last has none. */
const nextBlock = (index: number, blocks: number): number => Math.min(index + 1, blocks - 1);

/** Bugs of where operands are read. */
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
