import { multiplyFloat32, subtractFloat32 } from '../../src/arith/index.js';
import { exp2Hardware } from '../online-softmax/units.js';
import type { RowMaximum } from '../online-softmax/steps.js';
import type { VariationContext } from '../fa4/variation.js';
import { variant, type KernelVariant } from './variant.js';

/** The row's maximum where a rescale is skipped by another rule than lag ≥ −threshold. */
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
