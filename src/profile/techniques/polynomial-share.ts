import type { PolynomialDegree } from '../../../kernels/index.js';
import { formatDigits, formatPercentage } from '../../words/index.js';
import type { PolynomialShareCase, ShareMeasure } from '../trade-offs/polynomial-share-case.js';
import type { ScoreRegimeName } from '../../../properties/index.js';
import { polynomialDegrees } from '../functions.js';
import { exponentialShares } from '../trade-offs/exp2-shares.js';
import {
  forwardEvidence,
  measureCases,
  measuredProblems,
  type MeasuredProblems,
  usualSizes,
} from '../trade-offs/measured-problems.js';
import { resolveTradeOff, tradeOffCases } from '../trade-offs/trade-off-request.js';
import type { ProfileOptions } from './profile.js';

/** Ratios from which the polynomial shows: an error relative to that of the special function unit alone. */
const visibleRatio = { output: 1.05, lse: 2 };

/** A measurement and its regime. */
interface Found {
  readonly regime: string;
  readonly measure: ShareMeasure;
}

function worstOf(found: readonly Found[], ratio: (measure: ShareMeasure) => number | null): Found {
  return found.reduce((a, b) => ((ratio(b.measure) ?? 1) > (ratio(a.measure) ?? 1) ? b : a));
}

/** Describes the share from which a degree shows, and its largest effect. */
function degreeText(
  degree: PolynomialDegree,
  found: readonly Found[],
  ratio: (measure: ShareMeasure) => number | null,
  limit: number,
): string {
  const worst = worstOf(found, ratio);
  const shown = found.filter(({ measure }) => (ratio(measure) ?? 1) > limit);
  const most = `×${formatDigits(ratio(worst.measure) ?? 1, 3)}`;
  if (shown.length === 0) return `degree ${degree} nowhere (at most ${most})`;
  const share = Math.min(...shown.map(({ measure }) => measure.share));
  return `degree ${degree} from ${formatPercentage(share)} on (at most ${most}, ${worst.regime})`;
}

const outputRatio = (measure: ShareMeasure): number | null => measure.rootMeanSquareRatio;
const lseRatio = (measure: ShareMeasure): number | null => measure.largestLseRatio;

function tunedText(format: string, found: readonly Found[]): string[] {
  if (found.length === 0) return [];
  const output = worstOf(found, outputRatio);
  const lseError = ({ measure }: Found): number => measure.errors.largestLse ?? 0;
  const lse = found.reduce((a, b) => (lseError(b) > lseError(a) ? b : a));
  return [
    `${format}: as FlashAttention-4 is tuned the RMS error of O is at most ×${formatDigits(outputRatio(output.measure) ?? 1, 4)} (${output.regime}) that of the unit alone, and the LSE is off by ${formatDigits(lseError(lse), 3)} at most (${lse.regime}).`,
  ];
}

/** Summarises the measurements: the share and degree from which the polynomial shows in O and in the LSE. */
function summariseShares(cases: readonly PolynomialShareCase[]): string[] {
  const formats = [...new Set(cases.map(({ format }) => format))];
  return formats.flatMap((format) => {
    const found = cases
      .filter((one) => one.format === format)
      .flatMap(({ regime, shares }) => shares.map((measure) => ({ regime, measure })));
    const even = found.filter(({ measure }) => measure.tunings.length === 0);
    const degrees = [...new Set(even.map(({ measure }) => measure.degree))].filter(
      (degree) => degree !== null,
    );
    const texts = (ratio: (measure: ShareMeasure) => number | null, limit: number): string =>
      degrees
        .map((degree) => {
          const ofDegree = even.filter(({ measure }) => measure.degree === degree);
          return degreeText(degree, ofDegree, ratio, limit);
        })
        .join(', ');
    return [
      `${format}: the polynomial shows in the RMS error of O (above ×${visibleRatio.output}): ${texts(outputRatio, visibleRatio.output)}.`,
      `${format}: it shows in the largest error of the LSE (above ×${visibleRatio.lse}): ${texts(lseRatio, visibleRatio.lse)}.`,
      ...tunedText(
        format,
        found.filter(({ measure }) => measure.tunings.length > 0),
      ),
    ];
  });
}

/** The profile of the share of exponentials that the polynomial computes. */
export interface PolynomialShareProfile {
  readonly technique: 'polynomial-share';
  readonly title: string;
  readonly problems: MeasuredProblems;
  readonly evidence: readonly string[];
  readonly cases: readonly PolynomialShareCase[];
  readonly notes: readonly string[];
  /** Conclusions for the author of a kernel. */
  readonly summary: readonly string[];
}

/** Regimes in which the exponentials decide; those with a moving maximum are for the rescale threshold. */
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
 * @throws RequestError for an unknown regime, format, size or tuning entry
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
