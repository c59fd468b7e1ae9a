import {
  type Exp2Pattern,
  type Exp2Tuning,
  exp2Tunings,
  fragmentColumns,
  fragmentsPerRow,
  type PolynomialDegree,
  polynomialShare,
  usesPolynomial,
} from '../../../kernels/index.js';
import { RequestError } from '../../request-error.js';

/** The columns of a tile row that a tuning entry of FlashAttention-4 gives to the polynomial. */
export interface TuningLanes {
  /** Name, as in d128-causal-1cta-sm_100. */
  readonly name: string;
  readonly pattern: Exp2Pattern;
  /** Share of the row's 128 columns, from 0 to 1. */
  readonly polynomialShare: number;
  /** Fragments of 32 columns, with a letter for each column: p for the polynomial, h for the hardware. */
  readonly fragments: readonly string[];
  /** Number of neighbouring columns that are computed by different units. */
  readonly mixedNeighbours: number;
}

/** The name of a tuning entry, made of its conditions. */
function tuningName({ headDim, causal, ctas, architecture, inputBits }: Exp2Tuning): string {
  return [
    `d${headDim}`,
    causal ? 'causal' : 'full',
    `${ctas}cta`,
    ...(architecture === null ? [] : [architecture]),
    ...(inputBits === 8 ? ['fp8'] : []),
  ].join('-');
}

/** The names of all tuning entries. */
export const tuningNames: readonly string[] = exp2Tunings.map(tuningName);

/**
 * The lanes of the tuning entry of that name, or of all.
 * @throws RequestError for a name that no entry has
 */
export function tuningLanes(name?: string): TuningLanes[] {
  if (name !== undefined && !tuningNames.includes(name))
    throw new RequestError(
      `no tuning entry ${JSON.stringify(name)}; known are ${tuningNames.join(', ')}`,
    );
  return exp2Tunings
    .filter((tuning) => name === undefined || tuningName(tuning) === name)
    .map((tuning) => {
      const { pattern } = tuning;
      const fragments = Array.from({ length: fragmentsPerRow }, (_, fragment) =>
        Array.from({ length: fragmentColumns }, (_, k) =>
          usesPolynomial(pattern, fragment, k) ? 'p' : 'h',
        ).join(''),
      );
      const row = fragments.join('');
      return {
        name: tuningName(tuning),
        pattern,
        polynomialShare: polynomialShare(pattern),
        fragments,
        mixedNeighbours: [...row].filter((lane, i) => i > 0 && lane !== row[i - 1]).length,
      };
    });
}

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
  /** Names of FlashAttention-4's tuning entries with this pattern; none for a share that no entry has. */
  readonly tunings: readonly string[];
}

const hardwareOnly: Exp2Pattern = { frequency: 0, reserve: 4, startFragment: 0 };

/** The pattern with the polynomial on whole fragments from the given one to the last but one. */
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

/** FlashAttention-4's patterns, each once, with FlashAttention-4's degree, in ascending share. */
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
 * The divisions to compare, the unit alone first: for each degree 25, 50, 75 and 100 %, then
 * FlashAttention-4's own, in degree 3.
 * @param tuning the name of one tuning entry; default all
 * @throws RequestError for a name that no entry has
 */
export function exponentialShares(
  degrees: readonly PolynomialDegree[],
  tuning?: string,
): ExponentialShare[] {
  return [hardwareShare, ...degrees.flatMap(evenShares), ...tunedShares(tuning)];
}
