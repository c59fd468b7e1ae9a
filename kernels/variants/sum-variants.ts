import { addFloat32 } from '../../src/arith/index.js';
import { variant, type KernelVariant } from './variant.js';

/** Columns of eight whose accumulators take part. */
const reducedLanes = 4;

/** The row sum over the first two of the four packed accumulators. */
function partialRowSum(start: number, weights: readonly number[]): number {
  const lanes = [start, 0, 0, 0];
  weights.forEach((p, j) => {
    if (j % 8 < reducedLanes) lanes[j % 8] = addFloat32(lanes[j % 8], p);
  });
  return addFloat32(addFloat32(lanes[0], lanes[2]), addFloat32(lanes[1], lanes[3]));
}

/** Bugs of the row sum and of the end, where it is used. */
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
