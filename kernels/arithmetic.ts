import type { FormatName } from '../src/formats/index.js';
import type { OutputRounding, SharedMaximum } from './promises.js';

/** Arithmetic of a sum of products. */
export type SumArithmetic =
  /**
   * A chain of fused sums, as tensor cores form it: `productsPerSum` products and the accumulator
   * are aligned to the largest exponent among them, truncated to 2^-alignedFractionBits of it, added
   * exactly, and the sum truncated to resultFractionBits.
   */
  | {
      readonly kind: 'fused';
      readonly productsPerSum: number;
      readonly alignedFractionBits: number;
      readonly resultFractionBits: number;
    }
  /** One product and one addition after the other, both rounded to fp32, in ascending order. */
  | { readonly kind: 'sequential' }
  /**
   * Any order: every product adds an error of at most this much relative to the sum of magnitudes,
   * and a typical sum of n of them √n times as much. Roundings of the operands add `ofOperands` to
   * the whole, relative to the sum of magnitudes, where operands below `smallestOperand` count as
   * `smallestOperand`.
   */
  | {
      readonly kind: 'any-order';
      readonly perProduct: number;
      readonly ofOperands: number;
      readonly smallestOperand: number;
    };

/** The maximum that the exponents of the weights are relative to. */
export type MaximumRule =
  /**
   * The largest score of the blocks met so far, from the last block to the first; it lags where it
   * would grow by at most `threshold` (log2). 2^offset is the weight of a score that equals it.
   */
  | {
      readonly kind: 'online';
      readonly blockKeys: number;
      readonly threshold: number;
      readonly offset: number;
    }
  /** The row's largest score, known before the first weight; weights are divided by their sum. */
  | { readonly kind: 'whole-row' }
  /**
   * An unknown maximum: the row's own, or one that it shares with the other rows of the head, or none
   * at all; it is also unknown whether weights are rounded before or after they are divided by their
   * sum. Where the maximum grows, older sums are multiplied by a factor, of this relative error, once
   * per `tileKeys` keys.
   */
  | {
      readonly kind: 'unknown';
      readonly shared: SharedMaximum;
      readonly factors: { readonly error: number; readonly tileKeys: number } | null;
    };

/** Errors of the exponent that a score becomes. Errors are relative but for one, and absolute in the exponent. */
export interface ExponentArithmetic {
  /** Relative to the distance from the maximum in use. */
  readonly ofDistance: number;
  /** Relative to the score itself. */
  readonly ofScore: number;
  /** Relative to the maximum in use, the same for all weights that share it. */
  readonly common: number;
  /** Additional, from a softcap: relative to the capped score. */
  readonly ofSoftcap: number;
  /**
   * For a kernel that adds a bias or ALiBi: relative to the size of the addend, from forming it, adding it and scaling the
   * sum. Left out: the kernel adds none.
   */
  readonly ofAddend?: number;
  /** Error of every exponent (log2): scores that are subnormal in the format that they are kept in. */
  readonly absolute: number;
}

/**
 * Sums P·V of tiles of keys, each begun at 0 and kept in a short format, which are added in the arithmetic of `values`.
 * Everything is relative.
 */
export interface ValueTiles {
  /** Keys of a tile: a multiple of 64. */
  readonly keys: number;
  /** Products after which the sum is rounded. */
  readonly productsPerSum: number;
  /** The largest error of that rounding, relative to the largest of the sum and its products. */
  readonly roundoff: number;
}

/** Largest relative errors of the exponential. */
export interface ExponentialArithmetic {
  readonly hardware: number;
  readonly polynomial: number;
  /** Mean of the polynomial's error over all fractions, signed. */
  readonly polynomialMean: number;
  /** Columns of a block of keys that the polynomial computes; empty for none. */
  readonly polynomialColumns: readonly boolean[];
}

/** The end of a row. Relative errors but for the logarithm's. */
export interface FinishArithmetic {
  /** The reciprocal of the row sum (or the division by it), and the products with it. */
  readonly normalise: number;
  /** The logarithm: absolute for a result below 1, in units of log2, and relative to a larger one. */
  readonly logarithm: number;
  /** Every operation of the LSE's assembly, relative to its result. */
  readonly elementwise: number;
}

/** A kernel's arithmetic of dropout. */
export interface DropoutArithmetic {
  /** Number of times that weights may be rounded to their format, before and after the factor 1/(1 − probability). */
  readonly roundings: number;
  /** Largest relative error of that factor and of the product with it. */
  readonly factor: number;
}

/** All of a kernel's arithmetic that its error bounds depend on. */
export interface KernelArithmetic {
  /** Description of the kernel that these bounds are for. */
  readonly description: string;
  readonly scores: SumArithmetic;
  /** softmax scale times log2 e as the kernel has it, relative to its exact value: c = C·(1 + this). */
  readonly scaleError: number;
  /** Scores, scaled or not, of this size or more may leave the range of the format that they are kept in. */
  readonly largestScore: number;
  /** Scaled scores of this size or more are outside the kernel's promises. */
  readonly scoreLimit: number;
  readonly exponent: ExponentArithmetic;
  readonly exponential: ExponentialArithmetic;
  readonly maximum: MaximumRule;
  /** The format that P is rounded to before its product with V. */
  readonly weightFormat: FormatName;
  /** Factor of P before it is rounded, beyond the one in the exponents; left out: 1. */
  readonly weightScale?: number;
  /**
   * Treatment of weights beyond the format's largest number: `bounded`, their error counts, or no bound
   * holds where they become infinite; `fault`, a correct kernel has none.
   */
  readonly overflow: 'bounded' | 'fault';
  readonly values: SumArithmetic;
  /** Sums P·V of their own for tiles of keys; left out: none. */
  readonly valueTiles?: ValueTiles;
  /**
   * Additions, one after the other, that a weight may go through within one block of the row sum; 0
   * where all weights are added in sequence or in any order, as `values` says.
   */
  readonly rowSumAdditions: number;
  /** The relative error of one addition to the row sum. */
  readonly rowSumAddition: number;
  /** Whether the row sum adds weights after they are rounded. */
  readonly rowSumRounded: boolean;
  /** Relative error of partial results of splits, as they are stored. */
  readonly partials: number;
  readonly finish: FinishArithmetic;
  /** On a problem with dropout; left out on others, and where it is unknown. */
  readonly dropout?: DropoutArithmetic;
  readonly outputFormat: FormatName;
  readonly outputRounding: OutputRounding;
  /** Sums over keys, not yet divided by the row sum, may leave their range beyond this. */
  readonly largestSum: number;
  /** Absolute errors from results that are subnormal: of a weight, and of a sum or product. */
  readonly underflow: { readonly weights: number; readonly sums: number };
}

/** The relative error of a factor that is rounded once to fp32. */
export function scaleErrorOf(exact: number): number {
  return exact === 0 ? 0 : Math.fround(exact) / exact - 1;
}

/** Unit roundoff of fp32. */
export const roundoff32 = 2 ** -24;

/** Scores beyond this may leave the range of fp32. */
export const largestScore32 = 2 ** 127;
