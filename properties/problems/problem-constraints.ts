import type { FormatName } from '../../src/formats/index.js';
import type { FeatureKind } from './features/feature-kinds.js';
import type { RegimeName, ScaleKind, Tiling } from './regimes/index.js';
import type { SizeChoices, SizeMultiples, SizeRange } from './sizes.js';

/** Kinds of special values that can be planted. */
export const specialKinds = ['nan', 'infinity'] as const;
/** One of {@link specialKinds}. */
export type SpecialKind = (typeof specialKinds)[number];

/** Constraints on the problems to draw. Anything left out is free. */
export interface ProblemConstraints {
  /** Formats of Q, K and V, which share one; default all seven. */
  readonly formats?: readonly FormatName[] | undefined;
  /** Default 1 to 2. */
  readonly batch?: SizeRange | undefined;
  /** Default 1 to 2. */
  readonly kvHeads?: SizeRange | undefined;
  /** Query heads per kv head; default 1 to 3. */
  readonly groupSize?: SizeRange | undefined;
  /** seqlen_q; default 1 to 129. A minimum of 0 is allowed. */
  readonly queries?: SizeRange | undefined;
  /** seqlen_k; default 1 to 257. A minimum of 0 is allowed. */
  readonly keys?: SizeRange | undefined;
  /** Default 1 to 32. */
  readonly qkDim?: SizeRange | undefined;
  /** Default 1 to 32. */
  readonly vDim?: SizeRange | undefined;
  /**
   * The allowed head dimensions, alike for Q, K and V, such as 64 and 128; default any. Ranges of qkDim
   * and vDim that are given too hold as well.
   */
  readonly dims?: readonly number[] | undefined;
  /** The only numbers of query heads that share a kv head, such as 1, 4 and 8; default any. */
  readonly groupSizes?: readonly number[] | undefined;
  /** Divisors of sizes, as in `{ keys: 64 }`; default 1. */
  readonly multiples?: SizeMultiples | undefined;
  /**
   * The largest product of batch, query heads, queries, keys and head dimension. Default 2^21, or the
   * least that the sizes allow where that is more.
   */
  readonly maximumElements?: number | undefined;
  /**
   * Regimes of the problems, which shrunken problems stay in; default every regime. Those that the other
   * constraints leave no room for are not drawn.
   */
  readonly regimes?: readonly RegimeName[] | undefined;
  /** Blocks of keys and the threshold that the regimes aim at; default those of FlashAttention-4. */
  readonly tiling?: Partial<Tiling> | undefined;
  /** true: all problems are causal; false: none; default: some. */
  readonly causal?: boolean | undefined;
  /** true: all problems have a sliding window; false: none; default: some. */
  readonly window?: boolean | undefined;
  /** true: all problems have a softcap; false: none; default: some. */
  readonly softcap?: boolean | undefined;
  /** Default every kind. */
  readonly scales?: readonly ScaleKind[] | undefined;
  /**
   * Special values that may be planted in Q, K and V; default none. e4m3 has no infinity, so there
   * only NaNs are planted.
   */
  readonly specialValues?: readonly SpecialKind[] | undefined;
  /**
   * Other features that problems may have: some have none of these, some several; default none of them. Regimes
   * that need one are drawn where it is listed.
   */
  readonly features?: readonly FeatureKind[] | undefined;
  /** Whether the masks may leave a query without any key; default true. */
  readonly emptyRows?: boolean | undefined;
}

/** The problems that constraints, with their defaults filled in, allow. */
export interface ProblemSpace extends SizeChoices {
  readonly formats: readonly FormatName[];
  readonly scales: readonly ScaleKind[];
  /** The features that there is room for. */
  readonly features: readonly FeatureKind[];
}

/** The problems of one regime that constraints allow. */
export interface RegimeChoice extends ProblemSpace {
  readonly name: RegimeName;
  /** Features that every problem of the regime has. */
  readonly needs: readonly FeatureKind[];
}

/** Constraints with every default filled in. */
export interface ResolvedConstraints extends ProblemSpace {
  /** The allowed problems of each regime that there is room for; at least one. */
  readonly choices: readonly RegimeChoice[];
  readonly maximumElements: number;
  readonly tiling: Tiling;
  readonly causal: boolean | undefined;
  readonly window: boolean | undefined;
  readonly softcap: boolean | undefined;
  readonly specialValues: readonly SpecialKind[];
  readonly emptyRows: boolean;
}
