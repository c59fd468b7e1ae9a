import type { AttentionReference } from '../../../oracles/index.js';
import { scoreProblem, scoreRegime } from '../../../properties/index.js';
import { fusedMultiplyAddFloat32, multiplyFloat32, subtractFloat32 } from '../../arith/index.js';
import { encode, formats } from '../../formats/index.js';
import { exp2ApproxFtz } from '../../hardware/index.js';
import type { Problem } from '../../problem/index.js';
import { lazily } from '../../reuse.js';
import { largestWeightExponent } from '../limits/weight-formats.js';
import { blockScores, type TileScores } from './block-scores.js';
import {
  errorRatio,
  exactAttention,
  forwardErrors,
  runForward,
  type ForwardErrors,
  type ForwardRun,
} from './forward-run.js';
import type { TradeOffCase, TradeOffRequest } from './trade-off-request.js';

/** The largest weights and sums that a forward reached; log2 throughout, −∞ for nothing. */
interface ReachedWeights {
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

/** The effect of a rescale threshold on one problem. */
export interface RescaleMeasure {
  /** log2 by which a maximum may lag: 0 for no lag, Infinity for any lag. */
  readonly threshold: number;
  /** Among the rows, over all blocks, whose maximum had grown: the share not rescaled; null for none. */
  readonly rowsSkipped: number | null;
  /**
   * Among the warps, over all blocks but the first: the share whose output was not multiplied; null
   * where there is one block only.
   */
  readonly warpsSkipped: number | null;
  readonly errors: ForwardErrors;
  /**
   * max |error| and RMS as multiples of those with threshold 0 on the same problem; null where one of
   * them is missing or both are 0.
   */
  readonly largestRatio: number | null;
  readonly rootMeanSquareRatio: number | null;
  /** log2 of the largest weight before it is rounded. */
  readonly largestWeight: number;
  /** log2 of the room below the largest finite number: for P in its format, for l and O in fp32. */
  readonly headroom: {
    readonly weights: number;
    readonly rowSum: number;
    readonly output: number;
  };
}

/** The effects of the thresholds on the problems of a regime in a format. */
export interface RescaleCase extends TradeOffCase {
  /** FlashAttention-4's max_offset for the format: weights reach 2^maxOffset without a lag. */
  readonly maxOffset: number;
  readonly thresholds: readonly RescaleMeasure[];
}

/** The step of regimes that have one: the threshold; for 0 and Infinity FlashAttention-4's 8. */
export function stepOf(threshold: number): number {
  return threshold > 0 && threshold < Infinity ? threshold : 8;
}

/** log2 of the bound from which a number is not a finite fp32 number. */
const float32Exponent = 128;

/** A problem and the values that do not depend on the threshold. */
interface MeasuredProblem {
  readonly problem: Problem;
  readonly run: (threshold: number) => ForwardRun;
  readonly reference: () => AttentionReference;
  /** The errors with threshold 0. */
  readonly baseline: () => ForwardErrors;
}

function share(part: number, rest: number): number | null {
  return part + rest === 0 ? null : part / (part + rest);
}

/** The largest weights and sums, in the configuration of the run. */
function reached(problem: Problem, { settings }: ForwardRun, request: TradeOffRequest) {
  const scale = Math.fround(problem.scale * Math.LOG2E);
  const [maxOffset, blockKeys] = [Number(settings['maxOffset']), Number(settings['blockKeys'])];
  return (thresholds: readonly number[]): ReachedWeights[] => {
    let totals: ReachedWeights[] | undefined;
    for (const tile of blockScores(problem, request.architecture, blockKeys, scale)) {
      const ofTile = thresholds.map((threshold) =>
        reachedWeights(tile, { threshold, maxOffset, scale }),
      );
      totals = totals?.map((total, i) => mergeReached(total, ofTile[i])) ?? ofTile;
    }
    return totals!;
  };
}

function measure(
  threshold: number,
  { run, reference, baseline }: MeasuredProblem,
  { largestExponent, largestRowSum, largestOutput }: ReachedWeights,
  format: TradeOffCase['format'],
): RescaleMeasure {
  const forward = run(threshold);
  const errors = forwardErrors(forward, reference());
  const { rowRescales, rowRescalesSkipped, warpRescales, warpRescalesSkipped } = forward.counters;
  return {
    threshold,
    rowsSkipped: share(rowRescalesSkipped, rowRescales),
    warpsSkipped: share(warpRescalesSkipped, warpRescales),
    errors,
    largestRatio: errorRatio(errors.largest, baseline().largest),
    rootMeanSquareRatio: errorRatio(errors.rootMeanSquare, baseline().rootMeanSquare),
    largestWeight: largestExponent,
    headroom: {
      weights: largestWeightExponent(format) - largestExponent,
      rowSum: float32Exponent - largestRowSum,
      output: float32Exponent - largestOutput,
    },
  };
}

/** Measures every threshold on the problem of a regime in a format, bit for bit, on this thread. */
export function measureRescale(
  { format, regime }: TradeOffCase,
  thresholds: readonly number[],
  request: TradeOffRequest,
): RescaleCase {
  const { architecture, queries, keys, dim, seed } = request;
  const { hasSteps } = scoreRegime(regime);
  const steps = [...new Set(hasSteps ? thresholds.map(stepOf) : [8])];
  const measures = new Map<number, RescaleMeasure>();
  let maxOffset = 0;
  for (const step of steps) {
    const problem = scoreProblem(regime, { queries, keys, dim, format, seed, step });
    const run = (threshold: number): ForwardRun =>
      runForward(problem, { architecture, 'rescale.threshold': threshold });
    const reference = lazily(() => exactAttention(problem));
    const first = run(0);
    maxOffset = Number(first.settings['maxOffset']);
    const baseline = lazily(() => forwardErrors(first, reference()));
    const ofStep = thresholds.filter((threshold) => !hasSteps || stepOf(threshold) === step);
    const found = reached(problem, first, request)(ofStep);
    ofStep.forEach((threshold, i) => {
      measures.set(
        threshold,
        measure(threshold, { problem, run, reference, baseline }, found[i], format),
      );
    });
  }
  return {
    format,
    regime,
    maxOffset,
    thresholds: thresholds.map((threshold) => measures.get(threshold)!),
  };
}
