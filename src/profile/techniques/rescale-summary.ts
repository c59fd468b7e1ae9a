import {
  formatGroupedCount,
  formatDigits,
  formatGrouped,
  formatPercentage,
} from '../../words/index.js';
import type { ThresholdLimit } from '../limits/threshold-limits.js';
import type { RescaleCase, RescaleMeasure } from '../trade-offs/rescale-case.js';

/** From here on an error counts as grown: the RMS error relative to that with threshold 0. */
const grownRatio = 1.1;

/** A measurement with the regime that it was made in. */
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

/** Which thresholds are proven safe for a format as FlashAttention-4 runs it. */
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

/** The worst of a ratio with where it was found. */
function worstText(found: readonly Found[], ratioOf: (one: Found) => number): string {
  const worst = found.reduce((a, b) => (ratioOf(b) > ratioOf(a) ? b : a));
  const { regime, measure } = worst;
  return `×${formatDigits(ratioOf(worst), 3)} (${regime}, threshold ${thresholdText(measure.threshold)})`;
}

/** From which threshold on the error grows, and where it is worst. */
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

/** Where values were lost altogether. */
function lostText(format: string, found: readonly Found[]): string[] {
  const lost = found.filter(({ measure }) => measure.errors.notFinite > 0);
  if (lost.length === 0) return [];
  const places = lost.map(
    ({ regime, measure }) =>
      `${formatGrouped(measure.errors.notFinite)} with ${thresholdText(measure.threshold)} (${regime})`,
  );
  return [`${format}: values that are not finite were measured: ${listText(places)}.`];
}

/** What each finite threshold saves. */
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
 * What the measurements and the proven limits say: which thresholds are safe for which format, where
 * the error starts to grow, what was lost and what is saved. A format is taken with the offset that
 * it was measured with, one that was not with 8 for 8-bit formats, else 0.
 */
export function summariseRescale(
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
