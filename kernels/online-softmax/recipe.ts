import { instructionLengths, type TensorCoreArithmetic } from '../../src/hardware/index.js';
import type { PolynomialDegree } from './exp2-polynomial.js';
import {
  naturalLogOf2,
  type Exp2Unit,
  type InputFormat,
  type OutFormat,
  type Reciprocal,
} from './units.js';
import type { Tiling } from './key-blocks.js';
import type { RowSumName } from './row-sums.js';
import type { ScoreChange } from './score-change.js';
import type { SplitLaw } from './split-tile.js';

/** The step from scores s and the row's maximum m to the exponents x. */
interface ExponentLaw {
  /** c, the factor of the exponents: softmax scale · log2 e and any further factors, an fp32 number. */
  readonly scale: number;
  /** Added to every exponent, an fp32 number. */
  readonly offset: number;
  /** Whether x = fma(s, c, offset − m·c); otherwise s·c is rounded before the sum. */
  readonly isFused: boolean;
}

/** The step from exponents to weights. */
interface ExponentialLaw {
  readonly unit: Exp2Unit;
  /** The columns of a block that software computes in the unit's place; null for none. */
  readonly polynomial: {
    readonly degree: PolynomialDegree;
    readonly columns: readonly boolean[];
  } | null;
}

/** A block's rescale of the sums of the blocks before it. */
interface RescaleLaw {
  /** log2 of the factor by which a row's maximum may grow before its sums are rescaled; 0: always. */
  readonly threshold: number;
  /**
   * `warps`: a warp multiplies its outputs where one of its rows has α < 1. `rows`: every row is
   * multiplied in every block.
   */
  readonly of: 'warps' | 'rows';
  /**
   * The exponent of α, by the maximum before and now: `difference`, (m − m′)·c; `as-weights`, that of a weight with the
   * score m relative to m′, which is not always 0 where m = m′.
   */
  readonly exponent: 'difference' | 'as-weights';
  /** Whether α is 0 and not NaN for a row whose every score so far is −∞. */
  readonly checksInfinity: boolean;
}

/** P·V of a block. */
interface ValueLaw {
  /**
   * `chain`: the tensor cores add the block to O. `warps`: four warps have a share of the block's keys
   * each, their products start from 0 and are added to O in fp32.
   */
  readonly sum: 'chain' | 'warps';
}

/** The step from the sums of a row to its output and LSE. */
interface FinishLaw {
  /** `after-every-block`: O is normalised, and its LSE known, after every block of keys. */
  readonly normalise: 'at-the-end' | 'after-every-block';
  readonly reciprocal: Reciprocal;
  /** Factor of the reciprocal, an fp32 number. */
  readonly outFactor: number;
  /**
   * `base-2`: (m·c + (lg2 l − offset))·ln 2, every operation rounded; `base-2-fused`: with m·c and the
   * sum as one. `natural`: m·scale + lg2 l·ln 2, with m·scale and the sum as one. `natural-of-base-2`: the same with c·ln 2 in
   * the place of the scale, rounded. `natural-rounded-maximum`: as `natural` with lg2 l·ln 2 and the sum as one, and m·scale rounded.
   * `log2`: as `base-2` before the product with ln 2, for a merge of parts that takes their LSEs so.
   */
  readonly logSumExp:
    | 'base-2'
    | 'base-2-fused'
    | 'natural'
    | 'natural-of-base-2'
    | 'natural-rounded-maximum'
    | 'log2';
  /** The LSE of a row without weights. */
  readonly emptyLogSumExp: number;
}

/**
 * A kernel that computes attention by an online softmax, as data: everything that decides the bits of
 * its results. The plain, the WebAssembly and the attributed forward work on recipes, and the
 * arithmetic that bounds need follows from one (arithmetic.ts).
 *
 * Common to all kernels: scores by tensor cores into fp32, masked ones −∞; a running maximum of each
 * row; weights exp2 of scaled differences from it, rounded for P·V to the format of the inputs, and
 * summed before that rounding.
 */
export interface Recipe {
  /** The kernel's name, for messages. */
  readonly kernel: string;
  readonly format: InputFormat;
  readonly outFormat: OutFormat;
  /** Arithmetic of both matrix products. */
  readonly tensorCore: TensorCoreArithmetic;
  readonly tiling: Tiling;
  /** The problem's scale. */
  readonly softmaxScale: number;
  /** Change of a score before its exponent; null for none: the scale is in the exponents. */
  readonly scoreChange: ScoreChange | null;
  readonly exponent: ExponentLaw;
  readonly exponential: ExponentialLaw;
  readonly rescale: RescaleLaw;
  readonly rowSum: RowSumName;
  readonly values: ValueLaw;
  readonly finish: FinishLaw;
  /** Split of the keys into parts that are combined at the end; null for one part. */
  readonly split: SplitLaw | null;
}

/** A head dimension of Q and K filled up to whole instructions of the tensor cores. */
export function filledDim({ tensorCore, format }: Recipe, qkDim: number): number {
  const length = Math.max(...instructionLengths(tensorCore.instruction, format));
  return length * Math.ceil(qkDim / length);
}

/** Factor of a row's maximum in a natural LSE, an fp32 number; null where the LSE is taken in base 2. */
export function naturalScale({ finish, softmaxScale, exponent }: Recipe): number | null {
  if (finish.logSumExp === 'natural' || finish.logSumExp === 'natural-rounded-maximum')
    return Math.fround(softmaxScale);
  const isNatural = finish.logSumExp === 'natural-of-base-2';
  return isNatural ? Math.fround(exponent.scale * naturalLogOf2) : null;
}

/**
 * The factor of the score differences in exact arithmetic: softmax scale · log2 e, or log2 e alone where scores are
 * changed.
 */
export function exactExponentScale({ scoreChange, softmaxScale }: Recipe): number {
  return scoreChange === null ? softmaxScale * Math.LOG2E : Math.LOG2E;
}

/** Columns of a block that the polynomial computes. */
export function polynomialColumnsOf({ exponential, tiling }: Recipe): readonly boolean[] {
  return (
    exponential.polynomial?.columns ?? Array.from({ length: tiling.keys }, (): boolean => false)
  );
}
