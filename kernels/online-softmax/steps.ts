import {
  addFloat32,
  fusedMultiplyAddFloat32,
  multiplyFloat32,
  subtractFloat32,
} from '../../src/arith/index.js';
import { decode, encode, formats } from '../../src/formats/index.js';
import { conversions, tensorCoreProduct } from '../../src/hardware/index.js';
import { exp2Polynomial } from './exp2-polynomial.js';
import {
  exp2Units,
  log2Hardware,
  naturalLogOf2,
  reciprocals,
  roundingConversions,
} from './units.js';
import type { KeyBlock } from './key-blocks.js';
import { naturalScale, polynomialColumnsOf, type Recipe } from './recipe.js';
import { rowSumLaws } from './row-sums.js';

const { fp32 } = formats;
const log2OfE = Math.fround(Math.LOG2E);

/** A block of keys on its way through the steps. */
export interface StepBlock extends KeyBlock {
  /** Index of the block among the tile's, in the order visited. */
  readonly index: number;
  /** Whether any query of the tile does not see all of its columns. */
  readonly isMasked: boolean;
}

/** A row's running maximum after a block, and its effects. */
export interface RowMaximum {
  /** The maximum that stays in use. */
  readonly stored: number;
  /** Subtrahend of the scores of this block. */
  readonly subtracted: number;
  /** The factor of the earlier sums. */
  readonly alpha: number;
  /** Whether α would be below 1 but for the threshold. */
  readonly isSkipped: boolean;
}

/** The maximum in use and the sum of a row. */
interface RowStatistics {
  readonly maximum: number;
  readonly sum: number;
}

/**
 * The steps of the forward on one tile that are not matrix products, in the order in which a block takes
 * them. Numbers are fp32 unless a step says that it takes bits.
 */
export interface ForwardSteps {
  /** The score for the softmax, from the product's fp32 bits. Masked ones are −∞ by then. */
  readonly score: (bits: number) => number;
  /** The larger of a running maximum and a score. */
  readonly larger: (maximum: number, score: number) => number;
  /** The maximum with which a row enters a block, from its kept value. */
  readonly keptMaximum: (kept: number) => number;
  /** The maximum from the row's kept value and the largest score so far; a row keeps the maximum, or its LSE. */
  readonly rowMaximum: (before: number, now: number, isFirst: boolean) => RowMaximum;
  readonly exponent: (score: number, subtracted: number) => number;
  readonly exponential: (x: number, column: number, block: StepBlock) => number;
  /** The bits of P in the inputs' format. */
  readonly weight: (p: number, block: StepBlock) => number;
  /** Initial value of a thread's sum in a block; some laws include its first weight. */
  readonly startingSum: (sum: number, alpha: number, firstWeight: number) => number;
  /** The thread's sum from that value and the weights of its columns. */
  readonly rowSum: (start: number, weights: readonly number[], block: StepBlock) => number;
  /** Factors of the outputs of the tile's rows, from their α. */
  readonly outputAlphas: (alphas: readonly number[], block: StepBlock) => readonly number[];
  /** Whether a warp multiplies its outputs, from their factors. */
  readonly rescalesWarp: (alphas: readonly number[]) => boolean;
  /** The bits of a sum of O as the accumulator holds them after a block. */
  readonly accumulated: (bits: number) => number;
  /** Factor of O at the end; `start` is the initial value of the last block's row sum. */
  readonly normaliser: (sum: number, start: number) => number;
  /** A row's maximum and sum after adding a sink, whose logit is in natural units; −∞ leaves them unchanged. */
  readonly withSink: (maximum: number, sum: number, sink: number) => RowStatistics;
  /** The log of the sum of exponentials, in base 2 where the recipe's LSE is; −∞ for an empty row. */
  readonly logSumExp2: (maximum: number, sum: number) => number;
  /** The LSE from that logarithm. */
  readonly logSumExp: (logSumExp2: number) => number;
}

/** Whether a row has no weights to divide by. */
export function isEmptySum(sum: number): boolean {
  return sum === 0 || Number.isNaN(sum);
}

/** m·c + (lg2 l − offset), rounded as the recipe's law requires, or the natural logarithm. */
function logarithmOf(recipe: Recipe): (maximum: number, sum: number) => number {
  const { scale, offset } = recipe.exponent;
  const law = recipe.finish.logSumExp;
  const natural = naturalScale(recipe);
  return (maximum, sum) => {
    const logarithm = log2Hardware(sum);
    if (natural !== null)
      return law === 'natural-rounded-maximum'
        ? fusedMultiplyAddFloat32(logarithm, naturalLogOf2, multiplyFloat32(maximum, natural))
        : fusedMultiplyAddFloat32(maximum, natural, multiplyFloat32(logarithm, naturalLogOf2));
    const lifted = subtractFloat32(logarithm, offset);
    return law === 'base-2-fused'
      ? fusedMultiplyAddFloat32(maximum, scale, lifted)
      : addFloat32(multiplyFloat32(maximum, scale), lifted);
  };
}

/** The exponent of a sink's weight: sink·log2 e − m·c + offset, every operation rounded. */
export function sinkExponent(
  { exponent: { scale, offset } }: Recipe,
  maximum: number,
  sink: number,
): number {
  const below = subtractFloat32(multiplyFloat32(sink, log2OfE), multiplyFloat32(maximum, scale));
  return addFloat32(below, offset);
}

/**
 * A row sum as tensor cores form it: the product of the rounded weights with ones, added to the initial value of the row.
 */
function tensorCoreSum({ tensorCore, format }: Recipe): ForwardSteps['rowSum'] {
  const round = conversions[roundingConversions[format]];
  const one = encode(formats[format], 1);
  return (start, weights) => {
    const [bits] = tensorCoreProduct(tensorCore, {
      m: 1,
      n: 1,
      k: weights.length,
      aFormat: format,
      bFormat: format,
      a: Uint32Array.from(weights, (p) => round.evaluate(encode(fp32, p))),
      bTransposed: new Uint32Array(weights.length).fill(one),
      c: Uint32Array.of(encode(fp32, start)),
    });
    return decode(fp32, bits);
  };
}

/**
 * The steps of a recipe: every operation is fp32, rounds to nearest even and keeps subnormals, except
 * where an instruction of the special function unit flushes them.
 */
export function recipeSteps(recipe: Recipe): ForwardSteps {
  return recipe.finish.normalise === 'at-the-end'
    ? stepsToTheEnd(recipe)
    : { ...stepsToTheEnd(recipe), ...blockwiseSteps(recipe) };
}

/**
 * Steps that differ where O is normalised after every block: a row keeps its LSE, whose quotient by the
 * scale stands for the maximum of the blocks before; these have the weight α = e^(LSE − m·scale).
 */
function blockwiseSteps({
  softmaxScale,
  exponential,
}: Recipe): Pick<ForwardSteps, 'keptMaximum' | 'rowMaximum'> {
  const scale = Math.fround(softmaxScale);
  const exp2 = exp2Units[exponential.unit];
  return {
    keptMaximum: (logSumExp) => Math.fround(logSumExp / scale),
    rowMaximum: (logSumExp, now, isFirst) => {
      const above = subtractFloat32(logSumExp, multiplyFloat32(now, scale));
      return {
        stored: now,
        subtracted: now === -Infinity ? 0 : now,
        alpha: isFirst ? 0 : exp2(multiplyFloat32(above, log2OfE)),
        isSkipped: false,
      };
    },
  };
}

/** The steps with O normalised at the end. */
function stepsToTheEnd(recipe: Recipe): ForwardSteps {
  const { format, exponent, exponential, rescale, finish } = recipe;
  const { scale, offset } = exponent;
  const rowSum = rowSumLaws[recipe.rowSum];
  const threshold = Math.fround(rescale.threshold);
  const exp2 = exp2Units[exponential.unit];
  const degree = exponential.polynomial?.degree;
  const isPolynomial = polynomialColumnsOf(recipe);
  const toWeight = conversions[roundingConversions[format]];
  const reciprocal = reciprocals[finish.reciprocal];
  const logarithm = logarithmOf(recipe);
  const isFinal = naturalScale(recipe) !== null || finish.logSumExp === 'log2';
  const exponentOf = (score: number, subtracted: number): number => {
    const bias = subtractFloat32(offset, multiplyFloat32(subtracted, scale));
    return exponent.isFused
      ? fusedMultiplyAddFloat32(score, scale, bias)
      : addFloat32(multiplyFloat32(score, scale), bias);
  };
  return {
    score: (bits) => decode(fp32, bits),
    // PTX's max: a NaN loses.
    larger: (maximum, score) => (Number.isNaN(maximum) || score > maximum ? score : maximum),
    keptMaximum: (maximum) => maximum,
    rowMaximum: (before, now, isFirst) => {
      const subtracted = now === -Infinity ? 0 : now;
      if (isFirst) return { stored: now, subtracted, alpha: 0, isSkipped: false };
      const above = rescale.checksInfinity ? subtracted : now;
      const lag =
        rescale.exponent === 'as-weights'
          ? exponentOf(before, above)
          : multiplyFloat32(subtractFloat32(before, above), scale);
      const alpha = exp2(lag);
      if (threshold > 0 && lag >= -threshold)
        return { stored: before, subtracted: before, alpha: 1, isSkipped: alpha < 1 };
      return { stored: now, subtracted, alpha, isSkipped: false };
    },
    exponent: exponentOf,
    exponential: (x, column) => (isPolynomial[column] ? exp2Polynomial(x, degree) : exp2(x)),
    weight: (p) => toWeight.evaluate(encode(fp32, p)),
    startingSum: rowSum.start,
    rowSum: rowSum.sum ?? tensorCoreSum(recipe),
    outputAlphas: (alphas) => alphas,
    rescalesWarp:
      rescale.of === 'rows' ? () => true : (alphas) => alphas.some((alpha) => alpha < 1),
    accumulated: (bits) => bits,
    normaliser: (sum) => multiplyFloat32(isEmptySum(sum) ? 1 : reciprocal(sum), finish.outFactor),
    withSink: (maximum, sum, sink) => {
      if (sink === -Infinity) return { maximum, sum };
      if (maximum === -Infinity)
        return { maximum: multiplyFloat32(sink, Math.fround(log2OfE / scale)), sum: 2 ** offset };
      return { maximum, sum: addFloat32(sum, exp2(sinkExponent(recipe, maximum, sink))) };
    },
    logSumExp2: (maximum, sum) =>
      isEmptySum(sum) ? finish.emptyLogSumExp : logarithm(maximum, sum),
    logSumExp: (logSumExp2) => (isFinal ? logSumExp2 : multiplyFloat32(logSumExp2, naturalLogOf2)),
  };
}
