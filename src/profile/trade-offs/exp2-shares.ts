import {
  exp2Tunings,
  fragmentsPerRow,
  polynomialShare,
  type Exp2Pattern,
  type PolynomialDegree,
} from '../../../kernels/index.js';
import { tuningLanes, tuningName } from '../techniques/tuning-lanes.js';

/** One way to divide a row's exponentials between the polynomial and the special function unit. */
export interface ExponentialShare {
  /** Null where no lane uses a polynomial. */
  readonly degree: PolynomialDegree | null;
  /** Share of a row's keys that the polynomial computes, from 0 to 1. */
  readonly share: number;
  readonly pattern: Exp2Pattern;
  /**
   * Whether only columns 0 to 95 of a block hold keys. The kernel gives the last fragment of 32 columns
   * to the unit whatever the pattern, so that all keys are the polynomial's only where none is there.
   */
  readonly avoidsLastFragment: boolean;
  /** FlashAttention-4's tuning entries with this pattern, by name; none for a share of our own. */
  readonly tunings: readonly string[];
}

const hardwareOnly: Exp2Pattern = { frequency: 0, reserve: 4, startFragment: 0 };

/** Whole fragments from the given one to the last but one on the polynomial. */
function wholeFragments(startFragment: number): Exp2Pattern {
  return { frequency: 32, reserve: 32, startFragment };
}

/** The degree that FlashAttention-4 runs. Source: softmax.py of Dao-AILab/flash-attention. */
const usualDegree: PolynomialDegree = 3;

/** The whole row on the special function unit. */
const hardwareShare: ExponentialShare = {
  degree: null,
  share: 0,
  pattern: hardwareOnly,
  avoidsLastFragment: false,
  tunings: [],
};

/** Shares of 25 %, 50 %, 75 % and 100 %: one, two and three of four fragments, and all keys. */
function evenShares(degree: PolynomialDegree): ExponentialShare[] {
  const starts = Array.from({ length: fragmentsPerRow - 1 }, (_, i) => fragmentsPerRow - 2 - i);
  const patterns = starts.map(wholeFragments);
  const shares = patterns.map((pattern): ExponentialShare => {
    const share = polynomialShare(pattern);
    return { degree, share, pattern, avoidsLastFragment: false, tunings: [] };
  });
  const most = shares.at(-1)!;
  return [...shares, { ...most, share: 1, avoidsLastFragment: true }];
}

/** FlashAttention-4's patterns, each once, with the degree that it runs; from the least share up. */
function tunedShares(tuning: string | undefined): ExponentialShare[] {
  const named = tuningLanes(tuning);
  const patterns = new Map<string, ExponentialShare>();
  for (const entry of exp2Tunings) {
    const name = tuningName(entry);
    const lanes = named.find((known) => known.name === name);
    if (lanes === undefined || lanes.polynomialShare === 0) continue;
    const key = JSON.stringify(entry.pattern);
    const tunings = [...(patterns.get(key)?.tunings ?? []), name];
    const { pattern, polynomialShare: share } = lanes;
    patterns.set(key, {
      degree: usualDegree,
      share,
      pattern,
      avoidsLastFragment: false,
      tunings,
    });
  }
  return [...patterns.values()].sort((a, b) => a.share - b.share);
}

/**
 * The divisions to compare, the unit alone first: for each degree 25, 50, 75 and 100 %, then what
 * FlashAttention-4 runs, in degree 3.
 * @param tuning the name of one tuning entry; default all
 * @throws RequestError for a name that no entry has
 */
export function exponentialShares(
  degrees: readonly PolynomialDegree[],
  tuning?: string,
): ExponentialShare[] {
  return [hardwareShare, ...degrees.flatMap(evenShares), ...tunedShares(tuning)];
}
