import { fusedMultiplyAddFloat32, multiplyFloat32, subtractFloat32 } from '../../arith/index.js';
import { encode, formats } from '../../formats/index.js';
import { exp2ApproxFtz } from '../../hardware/index.js';
import type { TileScores } from './block-scores.js';

/** The largest weights and sums that a forward reached; log2 throughout, −∞ for nothing. */
export interface ReachedWeights {
  /** The largest exponent x of any weight P = exp2(x), an fp32 number. */
  readonly largestExponent: number;
  /** log2 of the largest row sum l after any block. */
  readonly largestRowSum: number;
  /** log2 of the largest Σ P|v| of an element after any block, which |O| never exceeds. */
  readonly largestOutput: number;
  /** Rows whose sums were rescaled, and those whose rescale was skipped, over all blocks. */
  readonly rowRescales: number;
  readonly rowRescalesSkipped: number;
}

/** Parameters that decide about a row's maximum. */
interface RescaleRule {
  /** log2; Infinity for no rescale at all. */
  readonly threshold: number;
  readonly maxOffset: number;
  /** softmax scale · log2 e, an fp32 number above 0. */
  readonly scale: number;
}

const { fp32 } = formats;
const one = encode(fp32, 1);

/**
 * Follows FlashAttention-4's running maximum through the blocks of a tile: the decisions to rescale and
 * the exponents with the kernel's fp32 instructions, sums of weights in fp64, so that they may exceed
 * fp32's range. Source of the rule: flash_attn/cute/softmax.py of Dao-AILab/flash-attention.
 */
export function reachedWeights(
  { rows, blocks }: TileScores,
  { threshold, maxOffset, scale }: RescaleRule,
): ReachedWeights {
  let [largestExponent, largestSum, largestOutput] = [-Infinity, 0, 0];
  let [rowRescales, rowRescalesSkipped] = [0, 0];
  const vDim = (blocks[0]?.outputs.length ?? 0) / rows;
  const outputs = new Float64Array(vDim);
  for (let row = 0; row < rows; row++) {
    let maximum = -Infinity;
    let sum = 0;
    outputs.fill(0);
    blocks.forEach((block, b) => {
      const before = maximum;
      const largest = block.maxima[row];
      maximum = Math.max(before, largest);
      const lag = b === 0 ? -Infinity : multiplyFloat32(subtractFloat32(before, maximum), scale);
      const shrinks = b > 0 && exp2ApproxFtz(encode(fp32, lag)) < one;
      if (b > 0 && threshold > 0 && lag >= -threshold) {
        maximum = before;
        if (shrinks) rowRescalesSkipped++;
      } else if (shrinks) rowRescales++;
      const bias = subtractFloat32(maxOffset, multiplyFloat32(maximum, scale));
      const exponent = fusedMultiplyAddFloat32(largest, scale, bias);
      largestExponent = Math.max(largestExponent, exponent);
      const older = maximum === before ? 1 : 2 ** ((before - maximum) * scale);
      const newer = 2 ** ((largest - maximum) * scale + maxOffset);
      sum = sum * older + newer * block.sums[row];
      largestSum = Math.max(largestSum, sum);
      for (let c = 0; c < vDim; c++) {
        outputs[c] = outputs[c] * older + newer * block.outputs[row * vDim + c];
        largestOutput = Math.max(largestOutput, outputs[c]);
      }
    });
  }
  return {
    largestExponent,
    rowRescales,
    rowRescalesSkipped,
    largestRowSum: Math.log2(largestSum),
    largestOutput: Math.log2(largestOutput),
  };
}

/** The largest values of two tiles together, and the sums of their counts. */
export function mergeReached(a: ReachedWeights, b: ReachedWeights): ReachedWeights {
  return {
    largestExponent: Math.max(a.largestExponent, b.largestExponent),
    largestRowSum: Math.max(a.largestRowSum, b.largestRowSum),
    largestOutput: Math.max(a.largestOutput, b.largestOutput),
    rowRescales: a.rowRescales + b.rowRescales,
    rowRescalesSkipped: a.rowRescalesSkipped + b.rowRescalesSkipped,
  };
}
