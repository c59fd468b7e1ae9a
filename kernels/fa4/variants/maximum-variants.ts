import { multiplyFloat32, subtractFloat32 } from '../../../src/arith/index.js';
import { exp2Hardware, warpRows } from '../../online-softmax/units.js';
import type { RowMaximum } from '../../online-softmax/steps.js';
import type { VariationContext } from '../forward.js';
import { type KernelVariant, variant } from './variant.js';

/** The row's maximum where rescales are skipped by another rule than lag ≥ −threshold. */
function maximumSkippedBy(
  { kernel, scale, configuration }: VariationContext,
  skips: (lag: number, threshold: number) => boolean,
): (before: number, now: number, isFirst: boolean) => RowMaximum {
  const threshold = Math.fround(configuration.rescaleThreshold);
  return (before, now, isFirst) => {
    if (isFirst) return kernel.rowMaximum(before, now, isFirst);
    const subtracted = now === -Infinity ? 0 : now;
    const lag = multiplyFloat32(subtractFloat32(before, subtracted), scale);
    const alpha = exp2Hardware(lag);
    return threshold > 0 && skips(lag, threshold)
      ? { stored: before, subtracted: before, alpha: 1, isSkipped: alpha < 1 }
      : { stored: now, subtracted, alpha, isSkipped: false };
  };
}

/** Bugs of the running maximum and of the decision to rescale. */
export const maximumVariants: readonly KernelVariant[] = [
  variant(
    {
      id: 'stale-zero-max',
      title: 'A masked first block leaves 0 as the running maximum',
      source: 'Dao-AILab/flash-attention #2082, #2174',
      mechanism:
        'A row that sees no key of its first block subtracts 0 for its maximum of −∞, and the 0 is stored; later scores below it are computed relative to 0 and underflow.',
      visibleWhen:
        'causal or windowed, rows whose first visited block is masked and whose scores are all far below 0',
    },
    {
      steps: ({ kernel }) => ({
        rowMaximum: (before, now, isFirst) => {
          const maximum = kernel.rowMaximum(before, now, isFirst);
          return { ...maximum, stored: maximum.stored === -Infinity ? 0 : maximum.stored };
        },
      }),
    },
  ),
  variant(
    {
      id: 'rescale-threshold-sign',
      title: 'The threshold is compared with the wrong sign',
      mechanism:
        'The lag of the maximum, never positive, is compared with +threshold: no rescale is skipped. The result is right; only its bits and the time tell.',
      visibleWhen: 'a maximum grows by less than the threshold; in the bits, never in the bound',
    },
    {
      steps: (context) => ({
        rowMaximum: maximumSkippedBy(context, (lag, threshold) => lag >= threshold),
      }),
    },
  ),
  variant(
    {
      id: 'rescale-threshold-inverted',
      title: 'Rescales are skipped where they are needed',
      mechanism:
        'The comparison of the lag with −threshold points the other way: a maximum that grew by more than the threshold is not taken over, so that weights reach 2^growth and overflow. Growth from −∞ counts.',
      visibleWhen:
        'a maximum grows by 128, or 16 for weights in fp16, or the block that a row visits first is masked; by less, in the bits only',
    },
    {
      steps: (context) => ({
        rowMaximum: maximumSkippedBy(context, (lag, threshold) => lag <= -threshold),
      }),
    },
  ),
];

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
        /** The α of the other tile by the block's first key; rows beyond the problem never rescale. */
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
