import { warpRows } from '../online-softmax/units.js';
import { variant, type KernelVariant } from './variant.js';

/** Bugs of the rescale of O and l. */
export const rescaleVariants: readonly KernelVariant[] = [
  variant(
    {
      id: 'alpha-not-on-sum',
      title: 'α is applied to O, not to l',
      mechanism:
        'The row sum goes on without being multiplied by α; earlier keys weigh too much in it.',
      visibleWhen: 'a row is rescaled: its maximum grows by more than the threshold',
    },
    { steps: () => ({ startingSum: (sum) => sum }) },
  ),
  variant(
    {
      id: 'alpha-not-on-output',
      title: 'α is applied to l, not to O',
      mechanism:
        'The output goes on without being multiplied by α; earlier keys weigh too much in it.',
      visibleWhen: 'a row is rescaled: its maximum grows by more than the threshold',
    },
    { steps: () => ({ rescalesWarp: () => false }) },
  ),
  variant(
    {
      id: 'alpha-of-other-stage',
      title: "O is multiplied by the other tile's α",
      mechanism:
        'The factor is read at the index of the other stage, the 128 rows that share the CTA; the row sum has its own.',
      visibleWhen:
        'more than 128 queries, and rows that are rescaled or whose first visited block is masked',
    },
    {
      steps: ({ runOtherTile, kernel }) => {
        /** By the block's first key; rows beyond the problem never rescale. */
        const alphas = new Map<number, readonly number[]>();
        let hasOther = false;
        runOtherTile({
          outputAlphas: (own, block) => {
            hasOther = true;
            alphas.set(block.first, own);
            return own;
          },
        });
        return {
          outputAlphas: (own, block) =>
            hasOther
              ? own.map((_, row) => alphas.get(block.first)?.[row] ?? 1)
              : kernel.outputAlphas(own, block),
        };
      },
    },
  ),
  variant(
    {
      id: 'rescale-needs-all-lanes',
      title: 'A warp rescales only if all of its lanes need it',
      mechanism:
        'The vote of the warp is "all" in place of "any": where only some of 32 rows have α < 1, none of their outputs is multiplied, though their row sums are.',
      visibleWhen: 'a maximum grows by more than the threshold in some rows of a warp, not in all',
    },
    {
      steps: () => ({
        // Lanes beyond the last query have α = 1.
        rescalesWarp: (alphas) => alphas.length === warpRows && alphas.every((alpha) => alpha < 1),
      }),
    },
  ),
];
