import type { FormatName } from '../src/formats/index.js';
import type { FeatureName } from '../src/problem/index.js';

/**
 * Kinds of scale: `default` is 1/√(qk dim), `negative` any negative number, `zero` 0, and `odd` any
 * positive number, such as a tuned 0.3 or a scale somebody forgot to divide.
 */
export const scaleKinds = ['default', 'negative', 'zero', 'odd'] as const;
/** One of {@link scaleKinds}. */
export type ScaleKind = (typeof scaleKinds)[number];

/**
 * Promises of a kernel model: the problems that it takes, the laws that it obeys and how well. Each
 * member is as that of `KernelPromises` in flashproof/properties, which documents the defaults. Its
 * arithmetic is in the model's `arithmetic` and `premises`.
 */
export interface ModelPromises {
  readonly formats: readonly FormatName[];
  readonly causal?: boolean;
  readonly window?: boolean;
  readonly softcap?: boolean;
  /** Features of the model for which it promises nothing. */
  readonly unpromised?: readonly FeatureName[];
  readonly groupedHeads?: boolean;
  readonly emptyRows?: boolean;
  readonly scales?: readonly ScaleKind[];
  readonly specialValues?: boolean;
  readonly lse?: boolean;
  readonly dims?: readonly number[];
  readonly sizes?: Readonly<
    Partial<Record<'qkDim' | 'vDim' | 'queries' | 'keys', { readonly max: number }>>
  >;
  readonly blockKeys?: number;
  readonly rescaleThreshold?: number;
  readonly scoreLimit?: { readonly raw: number; readonly scaled: number };
  /** Promise by the id of a law. */
  readonly laws?: Readonly<Record<string, 'bits' | 'bound' | 'none'>>;
  /** Other settings, each beside those that are chosen, under which it must stay within the bound. */
  readonly configurations?: readonly Readonly<Record<string, string>>[];
}

/**
 * Promises of a model's backward pass that are weaker than those of its forward pass; members left out
 * are as there.
 */
export interface BackwardPromises {
  readonly formats?: readonly FormatName[];
  readonly sizes?: ModelPromises['sizes'];
  /** Divisors of the head dimensions. */
  readonly multiples?: Readonly<Partial<Record<'qkDim' | 'vDim', number>>>;
}

/** Laws that every model obeys to the last bit, though not every kernel does. */
export const exactLaws = {
  'query-order': 'bits',
  'grouped-heads': 'bits',
  'weights-sum-to-one': 'bits',
} as const;

/** Formats that sums of products are kept in. */
export const accumulatorFormats = ['fp64', 'fp32', 'tf32', 'fp16', 'bf16'] as const;
/** One of {@link accumulatorFormats}. */
export type AccumulatorFormat = (typeof accumulatorFormats)[number];

/** Places where the scale enters. */
export const scalePlaces = [
  'scores',
  'folded-log2e',
  'q-after-rounding',
  'q-before-rounding',
  'root-of-both',
] as const;
/**
 * Place where the scale enters: the scores (times log2 e, or not), Q in fp32, Q before it is rounded
 * to its format, or its root into Q and K before they are rounded to theirs.
 */
export type ScalePlace = (typeof scalePlaces)[number];

/** When the row sum adds a weight. */
export const rowSumOrders = ['before-rounding', 'after-rounding'] as const;
/** When the row sum adds a weight: before P is rounded, or after. */
export type RowSumOrder = (typeof rowSumOrders)[number];

/** Ways to round an output to its format. */
export const outputRoundings = ['nearest', 'stochastic', 'truncated'] as const;
/** One of {@link outputRoundings}. */
export type OutputRounding = (typeof outputRoundings)[number];

/** Maxima that the scores of a row are taken relative to. */
export const sharedMaxima = ['row', 'group', 'none'] as const;
/** The row's own (which may lag), one that other rows of its head share, or none: e^score as it is. */
export type SharedMaximum = (typeof sharedMaxima)[number];

/** Formats that a kernel itself quantises Q and K to. */
export const operandFormats = ['int8', 'int4', 'nvfp4'] as const;
/** One of {@link operandFormats}: integers with a factor a group of rows, or e2m1 with one a block of 16 dimensions. */
export type QuantisedOperands = (typeof operandFormats)[number];

/** Rows that share a factor of quantised Q or K. */
export const operandGroups = ['blocks', 'threads'] as const;
/**
 * Blocks of consecutive rows, or what one thread of `mma.sync` holds of a warp's rows: of 32 rows of Q those alike modulo 8, of
 * 64 rows of K those alike in ⌊(row mod 8) / 2⌋.
 */
export type OperandGroups = (typeof operandGroups)[number];

/** What is subtracted before Q and K are quantised. */
export const smoothings = ['none', 'keys'] as const;
/** Nothing, or from K its mean over the keys, in K's format. */
export type Smoothing = (typeof smoothings)[number];

/** Ways to round to integers. */
export const integerRoundings = ['half-away', 'half-even'] as const;
/**
 * x / factor plus half of its sign, truncated, with the factor max|x| / 127; or x times 127 / max|x|, rounded to nearest even.
 */
export type IntegerRounding = (typeof integerRoundings)[number];

/** fp32 divisions of a quantisation. */
export const divisionQualities = ['full', 'nearest'] as const;
/** `div.full` of PTX, by the special function unit's reciprocal, as Triton divides; or rounded once. */
export type DivisionQuality = (typeof divisionQualities)[number];

/** Places where the scale of a quantising kernel enters. */
export const quantisedScalePlaces = ['folded', 'scores'] as const;
/** With log2 e into Q in fp32, before it is quantised; or on the scores. */
export type QuantisedScalePlace = (typeof quantisedScalePlaces)[number];

/** Formats that a kernel itself rounds or quantises V to. */
export const valueFormats = ['fp16', 'e4m3', 'nvfp4'] as const;
/** fp16; e4m3 with a factor a column, max|v| / 448; or e2m1 with one a block of 16 keys. */
export type ValueFormat = (typeof valueFormats)[number];

/** What an LSE of smoothed keys is of. */
export const smoothedLseKinds = ['corrected', 'as-smoothed'] as const;
/** The scores of K, with scale·q·mean added; or those of the smoothed K. */
export type SmoothedLse = (typeof smoothedLseKinds)[number];

/** Named qualities of an exponential. */
export const exponentialQualities = ['correctly-rounded', 'hardware'] as const;
/** One of {@link exponentialQualities}. */
export type ExponentialQuality = (typeof exponentialQualities)[number];

/** Qualities of the factors that rescale older sums. */
export const factorQualities = ['hardware', 'as-weights'] as const;
/** One of {@link factorQualities}. */
export type FactorQuality = (typeof factorQualities)[number];

/**
 * Declarations of a kernel's arithmetic, where it differs from that of any correct kernel: the bounds are
 * then those of a kernel that computes so. Members left out are as in `premisesByFormat`.
 */
export interface PremiseDeclaration {
  /** The format that scores are written in, raw, scaled and less the maximum; `input` that of Q. */
  readonly scores?: FormatName | 'input' | undefined;
  /** The format that P is rounded to; default that of V. */
  readonly weights?: FormatName | 'input' | undefined;
  /**
   * Factor of P, relative to the row's largest weight, before it is rounded, or an upper bound of it; default 1, and 2^7
   * for e4m3. No more than the format's largest number.
   */
  readonly weightScale?: number | undefined;
  /**
   * The format that elements of Q, K and V are rounded to once their factors (`q_descale`, …) are applied to them; default
   * fp32, or not at all where the factors are applied to scores and outputs.
   */
  readonly dequantized?: FormatName | undefined;
  /** Place where the scale enters; default anywhere that rounds no operand. */
  readonly scale?: ScalePlace | undefined;
  /** The format of the sums Q·K; default fp32 (13 fraction bits for 8-bit inputs, as on Hopper). */
  readonly qkAccumulator?: AccumulatorFormat | undefined;
  /** The format of the sums P·V; default as for Q·K. */
  readonly pvAccumulator?: AccumulatorFormat | undefined;
  /** When the row sum adds weights; default before they are rounded. */
  readonly rowSum?: RowSumOrder | undefined;
  /** The format that partial results of splits are stored in; default fp32. */
  readonly partials?: FormatName | undefined;
  /** Rounding of outputs; default to nearest. */
  readonly outputRounding?: OutputRounding | undefined;
  /** The maximum that the scores are relative to; default the row's. */
  readonly maximum?: SharedMaximum | undefined;
  /** Scaled scores of this size or more are not promised to be right; default none. */
  readonly scoreLimit?: number | undefined;
  /** The exponential, or its largest relative error; default 2^-13.4, that of a cubic polynomial. */
  readonly exponential?: ExponentialQuality | number | undefined;
  /** The factors of rescales; default the hardware's, or better. */
  readonly factors?: FactorQuality | undefined;
  /** The format that the kernel itself quantises Q and K to; default none, and the following seven mean nothing then. */
  readonly qk?: QuantisedOperands | undefined;
  /** Rows that share a factor; default blocks. */
  readonly qkGroups?: OperandGroups | undefined;
  /** Rows of a block of Q; default 128. */
  readonly qBlock?: number | undefined;
  /** Rows of a block of K; default 64. */
  readonly kBlock?: number | undefined;
  /** What is subtracted before; default nothing. */
  readonly smoothing?: Smoothing | undefined;
  /** Rounding to integers; default half away from zero. */
  readonly qkRounding?: IntegerRounding | undefined;
  /** The divisions of the quantisation; default `div.full`. */
  readonly qkDivision?: DivisionQuality | undefined;
  /** Place where the scale enters; default folded into Q. */
  readonly qkScale?: QuantisedScalePlace | undefined;
  /** The format that the kernel itself rounds or quantises V to; default V's own. */
  readonly values?: ValueFormat | undefined;
  /** Keys whose products P·V have a sum of their own, in `pvAccumulator`, which is added in fp32; default all keys. */
  readonly pvTile?: number | undefined;
  /** What the LSE is of where K is smoothed; default the scores of K. */
  readonly smoothedLse?: SmoothedLse | undefined;
}
