import type { ScoreRegimeName } from '../../../properties/index.js';
import { polynomialDegrees } from '../candidates.js';
import { exponentialShares } from '../trade-offs/exp2-shares.js';
import {
  forwardEvidence,
  measureCases,
  measuredProblems,
  type MeasuredProblems,
} from '../trade-offs/measured-problems.js';
import type { PolynomialShareCase } from '../trade-offs/polynomial-share-case.js';
import { resolveTradeOff, tradeOffCases } from '../trade-offs/trade-off-request.js';
import { summariseShares } from './polynomial-share-summary.js';
import type { ProfileOptions } from './profile.js';
import { usualSizes } from './trade-off-sizes.js';

/** The profile of the share of exponentials that the polynomial computes. */
export interface PolynomialShareProfile {
  readonly technique: 'polynomial-share';
  readonly title: string;
  readonly problems: MeasuredProblems;
  readonly evidence: readonly string[];
  readonly cases: readonly PolynomialShareCase[];
  readonly notes: readonly string[];
  /** What the figures say to the author of a kernel. */
  readonly summary: readonly string[];
}

/** Where the exponentials decide; the regimes of a moving maximum are for the rescale threshold. */
const usualRegimes: readonly ScoreRegimeName[] = [
  ...(['normal-1', 'normal-4', 'normal-16', 'sink', 'positive-values', 'constant-keys'] as const),
];

const notes: readonly string[] = [
  'FlashAttention-4 gives the last fragment of 32 columns of a block to the special function unit whatever its tuning, so that 75 % is the most that it can do. 100 % stands for blocks of 96 keys that leave this fragment empty; block borders then lie elsewhere, which changes an error a little too.',
];

/**
 * Profiles how the error of the emulated forward depends on the degree of the polynomial and on the
 * share of a row's exponentials that it computes, beside the special function unit alone, on problems
 * of several regimes of scores. The same options give the same figures, whatever the number of threads.
 * @throws RequestError for a regime, format, size or tuning entry that there is not
 */
export async function profilePolynomialShare(
  options: ProfileOptions = {},
): Promise<PolynomialShareProfile> {
  const { degrees = polynomialDegrees, tuning } = options;
  const request = resolveTradeOff(options, { ...usualSizes, regimes: usualRegimes });
  const shares = exponentialShares(degrees, tuning);
  const cases = tradeOffCases(request);
  const measured = await measureCases(
    { kind: 'polynomial-share', request, cases, shares } as const,
    options,
  );
  return {
    technique: 'polynomial-share',
    title: "Error of FlashAttention-4's forward by degree and share of the polynomial exp2",
    problems: measuredProblems(request),
    evidence: forwardEvidence(request),
    cases: measured,
    notes,
    summary: summariseShares(measured),
  };
}
