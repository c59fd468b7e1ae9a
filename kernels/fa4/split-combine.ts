import {
  addFloat32,
  fusedMultiplyAddFloat32,
  multiplyFloat32,
  subtractFloat32,
} from '../../src/arith/index.js';
import { exp2Hardware, log2Hardware, naturalLogOf2 } from '../online-softmax/units.js';
import type { SplitRow } from '../online-softmax/split-tile.js';
import { threadedSum } from '../online-softmax/row-sums.js';

/** The steps of the combine that may be changed. */
export interface CombineSteps {
  /** Whether a split's output is read, by its weight. */
  readonly readsSplit: (weight: number) => boolean;
}

/** The combine of FlashAttention-4. */
export const combineSteps: CombineSteps = { readsSplit: (weight) => weight > 0 };

const log2OfE = Math.fround(Math.LOG2E);
/** The largest head dimension with half as many threads a row. */
const narrowHeadDim = 64;

/**
 * A row of attention from its splits: weights exp2(lse·log2 e − max·log2 e) over their sum, and the outputs summed with
 * these weights in ascending order, in fp32; the LSE is max + log of the sum of weights. A split of weight 0 is not
 * read, since it may have written nothing. A row whose every LSE is −∞ gives 0 and −∞.
 *
 * Order of operations: flash_attn/cute/flash_fwd_combine.py of Dao-AILab/flash-attention, and its PTX as flash-attn-4
 * 4.0.0b36 compiles it. Exponential and logarithm are the special function unit's, the LSE is one multiply-add, and the
 * division rounds to nearest. Every other multiplication and addition rounds by itself; the PTX allows the assembler to
 * fuse the exponent's difference, and a weight's product with its sum.
 */
export function combineSplits(
  splits: readonly SplitRow[],
  vDim: number,
  steps: CombineSteps = combineSteps,
): { readonly out: Float32Array; readonly lse: number } {
  const max = splits.reduce((largest, { lse }) => (lse > largest ? lse : largest), -Infinity);
  const base = multiplyFloat32(max === -Infinity ? 0 : max, log2OfE);
  const scales = splits.map(({ lse }) =>
    exp2Hardware(subtractFloat32(multiplyFloat32(lse, log2OfE), base)),
  );
  const sum = threadedSum(scales, vDim <= narrowHeadDim ? 16 : 32);
  const inverse = sum === 0 || Number.isNaN(sum) ? 0 : Math.fround(1 / sum);
  const out = new Float32Array(vDim);
  splits.forEach((split, s) => {
    const weight = multiplyFloat32(scales[s], inverse);
    if (!steps.readsSplit(weight)) return;
    for (let c = 0; c < vDim; c++)
      out[c] = addFloat32(out[c], multiplyFloat32(weight, split.out === null ? NaN : split.out[c]));
  });
  return { out, lse: fusedMultiplyAddFloat32(log2Hardware(sum), naturalLogOf2, max) };
}
