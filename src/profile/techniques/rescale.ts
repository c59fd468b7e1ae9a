import {
  formatDigits,
  formatGrouped,
  formatGroupedCount,
  formatPercentage,
} from '../../words/index.js';
import {
  limitOffsets,
  type OffsetTrade,
  offsetTrades,
  type ThresholdLimit,
  thresholdLimits,
} from '../limits/threshold-limits.js';
import type { RescaleCase, RescaleMeasure } from '../trade-offs/rescale-case.js';
import { scoreRegimeNames } from '../../../properties/index.js';
import { createCandidates } from '../functions.js';
import { weightFormats } from '../limits/weight-formats.js';
import {
  forwardEvidence,
  measureCases,
  measuredProblems,
  type MeasuredProblems,
  usualSizes,
} from '../trade-offs/measured-problems.js';
import { resolveTradeOff, tradeOffCases } from '../trade-offs/trade-off-request.js';
import type { ProfileOptions } from './profile.js';

/** Ratio from which an error counts as grown: the RMS error relative to that with threshold 0. */
const grownRatio = 1.1;

/** A measurement and its regime. */
interface Found {
  readonly regime: string;
  readonly measure: RescaleMeasure;
}

/** A threshold in words. */
export function thresholdText(threshold: number): string {
  return threshold === Infinity ? '∞' : String(threshold);
}

function listText(items: readonly string[]): string {
  if (items.length < 2) return items.join('');
  return `${items.slice(0, -1).join(', ')} and ${items.at(-1)}`;
}

/** Describes the thresholds that are proven safe for a format as FlashAttention-4 runs it. */
function safetyText(limit: ThresholdLimit, keys: number): string {
  const { format, offset, largest, outcomes, weights } = limit;
  const safe = outcomes.filter(({ threshold }) => largest !== null && threshold <= largest);
  const unsafe = outcomes.filter(({ threshold }) => largest === null || threshold > largest);
  const reason = ({ threshold, shrinkage }: (typeof outcomes)[number]): string => {
    if (weights !== null && threshold <= weights) return 'l or O may overflow';
    if (shrinkage === null) return 'P may become infinite';
    return `P may be clamped and O shrink by ${formatPercentage(shrinkage)}`;
  };
  const most =
    largest === null ? 'no threshold' : `every threshold up to ${formatDigits(largest, 5)}`;
  const beyond = unsafe.map((one) => `${thresholdText(one.threshold)} (${reason(one)})`);
  return (
    `${format} with offset ${offset}: ${most} is proven safe for ${formatGroupedCount(keys, 'key')} and |v| <= 2^16; ` +
    `of those compared ${listText(safe.map(({ threshold }) => String(threshold)))}` +
    `${beyond.length === 0 ? '' : `, not ${listText(beyond)}`}.`
  );
}

const rmsRatio = ({ measure }: Found): number => measure.rootMeanSquareRatio ?? 1;
const largestRatio = ({ measure }: Found): number => measure.largestRatio ?? 1;

/** Describes the worst ratio and where it was found. */
function worstText(found: readonly Found[], ratioOf: (one: Found) => number): string {
  const worst = found.reduce((a, b) => (ratioOf(b) > ratioOf(a) ? b : a));
  const { regime, measure } = worst;
  return `×${formatDigits(ratioOf(worst), 3)} (${regime}, threshold ${thresholdText(measure.threshold)})`;
}

/** Describes the threshold from which the error grows, and where it is worst. */
function growthText(format: string, found: readonly Found[]): string {
  const grown = found.filter((one) => rmsRatio(one) > grownRatio);
  const worst = `at most ${worstText(found, rmsRatio)}, the largest error ${worstText(found, largestRatio)}`;
  if (grown.length === 0)
    return `${format}: no threshold makes the RMS error more than ${grownRatio} times that of threshold 0: ${worst}.`;
  const first = Math.min(...grown.map(({ measure }) => measure.threshold));
  const regimes = grown.filter(({ measure }) => measure.threshold === first);
  return (
    `${format}: the RMS error exceeds ${grownRatio} times that of threshold 0 from threshold ` +
    `${thresholdText(first)} on (${listText(regimes.map(({ regime }) => regime))}), ${worst}.`
  );
}

/** Describes the cases in which values were lost altogether. */
function lostText(format: string, found: readonly Found[]): string[] {
  const lost = found.filter(({ measure }) => measure.errors.notFinite > 0);
  if (lost.length === 0) return [];
  const places = lost.map(
    ({ regime, measure }) =>
      `${formatGrouped(measure.errors.notFinite)} with ${thresholdText(measure.threshold)} (${regime})`,
  );
  return [`${format}: values that are not finite were measured: ${listText(places)}.`];
}

/** Describes the savings of each finite threshold. */
function savingText(cases: readonly RescaleCase[], threshold: number): string[] {
  const shares = cases.flatMap(({ regime, format, thresholds }) => {
    const measure = thresholds.find((one) => one.threshold === threshold);
    const share = measure?.rowsSkipped ?? null;
    return share === null ? [] : [{ regime, format, share }];
  });
  if (shares.length === 0) return [];
  const sorted = [...shares].sort((a, b) => a.share - b.share);
  const [least, most] = [sorted[0], sorted.at(-1)!];
  const place = ({ share, regime, format }: typeof least): string =>
    `${formatPercentage(share)} (${regime}, ${format})`;
  return [
    `Threshold ${thresholdText(threshold)} skips from ${place(least)} to ${place(most)} of the rows' rescales that were due.`,
  ];
}

/**
 * Summarises the measurements and the proven limits: which thresholds are safe for which format,
 * where the error starts to grow, what was lost and what is saved. A format has the offset that it
 * was measured with; one that was not measured has 8 for 8-bit formats, else 0.
 */
function summariseRescale(
  cases: readonly RescaleCase[],
  limits: readonly ThresholdLimit[],
  keys: number,
): string[] {
  const offsetOf = (limit: ThresholdLimit): number =>
    cases.find(({ format }) => format === limit.format)?.maxOffset ??
    (limit.overflow === 'clamped' ? 8 : 0);
  const measured = [...new Set(cases.map(({ format }) => format))];
  const thresholds = (cases[0]?.thresholds ?? []).map(({ threshold }) => threshold);
  const ofFormat = (format: string): Found[] =>
    cases
      .filter((one) => one.format === format)
      .flatMap(({ regime, thresholds: all }) => all.map((measure) => ({ regime, measure })));
  return [
    ...limits
      .filter((limit) => limit.offset === offsetOf(limit))
      .map((limit) => safetyText(limit, keys)),
    ...measured.flatMap((format) => {
      const found = ofFormat(format);
      return [growthText(format, found), ...lostText(format, found)];
    }),
    ...thresholds
      .filter((threshold) => threshold > 0 && threshold < Infinity)
      .flatMap((threshold) => savingText(cases, threshold)),
  ];
}

/** The thresholds that are compared, in log2; Infinity never rescales. */
export const rescaleThresholds: readonly number[] = [0, 2, 4, 8, 16, Infinity];

/** The profile of FlashAttention-4's rescale threshold. */
export interface RescaleProfile {
  readonly technique: 'rescale';
  readonly title: string;
  readonly problems: MeasuredProblems;
  readonly evidence: readonly string[];
  readonly thresholds: readonly number[];
  readonly cases: readonly RescaleCase[];
  /** Proven for every format of weights, measured or not. */
  readonly limits: readonly ThresholdLimit[];
  readonly trades: readonly OffsetTrade[];
  readonly notes: readonly string[];
  /** Conclusions for the author of a kernel. */
  readonly summary: readonly string[];
}

const notes: readonly string[] = [
  'With an infinite threshold a row that sees no key in its first block, as under a causal mask, keeps the maximum -inf for good, and its P becomes infinite or NaN; any finite threshold rescales there.',
  'The polynomial takes exponents below 128 only: at 128 it gives infinity, beyond numbers of either sign.',
];

/**
 * Profiles FlashAttention-4's rescale threshold: the emulated forward against exact attention with each
 * threshold on problems of several regimes of scores, and the proven limits for all inputs. The same
 * options give the same figures, whatever the number of threads.
 * @throws RequestError for an unknown regime, format or size
 */
export async function profileRescale(options: ProfileOptions = {}): Promise<RescaleProfile> {
  const request = resolveTradeOff(options, { ...usualSizes, regimes: scoreRegimeNames });
  const thresholds = rescaleThresholds;
  const plan = { kind: 'rescale', request, cases: tradeOffCases(request), thresholds } as const;
  const cases = await measureCases(plan, options);
  const { keys } = request;
  const limits = thresholdLimits(weightFormats, { thresholds, keys }, createCandidates());
  const trades = limits
    .filter(({ offset, format }) => offset === limitOffsets[0] && format !== 'bf16')
    .flatMap((limit) => offsetTrades(limit, thresholds));
  return {
    technique: 'rescale',
    title: "FlashAttention-4's rescale threshold: how far a row's maximum may lag, in log2",
    problems: measuredProblems(request),
    evidence: forwardEvidence(request),
    thresholds,
    cases,
    limits,
    trades,
    notes,
    summary: summariseRescale(cases, limits, keys),
  };
}
