import {
  limitLargestValue,
  limitOffsets,
  limitScoreExponent,
  type PolynomialShareCase,
  type PolynomialShareProfile,
  type RescaleCase,
  type RescaleMeasure,
  type RescaleProfile,
  type ShareMeasure,
  type ThresholdLimit,
  type ThresholdOutcome,
  thresholdText,
} from '../../../profile/index.js';
import {
  formatDigits,
  formatGrouped,
  formatGroupedCount,
  formatPercentage,
  formatPowerOfTwo,
} from '../../../words/index.js';
import { alignColumns } from '../../layout/index.js';
import { notesText, summaryText, terminalWidth, tradeOffHeadText } from './head.js';

/** A share in per cent with one decimal; 0.0 % and 100.0 % stand only for exactly these shares. */
function shareText(share: number | null): string {
  if (share === null) return '-';
  const percent = (100 * share).toFixed(1);
  if (share > 0 && percent === '0.0') return '< 0.1 %';
  if (share < 1 && percent === '100.0') return '> 99.9 %';
  return `${percent} %`;
}

/** An exponent or a room in log2 with one decimal. */
function exponentText(exponent: number): string {
  const rounded = Math.abs(exponent) < 0.05 ? 0 : exponent;
  return Number.isFinite(rounded) ? rounded.toFixed(1) : thresholdText(rounded);
}

/** A ratio in this number of significant digits; "-" for null. */
function ratioText(ratio: number | null, digits: number): string {
  return ratio === null ? '-' : `×${formatDigits(ratio, digits)}`;
}

const rescaleHeadings = [
  ...['threshold', 'rows', 'warps', 'max/max|O|', 'to 0', 'max', 'RMS', 'to 0', 'LSE max'],
  ...['log2 P', 'room P', 'room l', 'room O', 'not finite'],
];

function measureRow(measure: RescaleMeasure): string[] {
  const { threshold, rowsSkipped, warpsSkipped, errors, largestRatio, rootMeanSquareRatio } =
    measure;
  const { largestWeight, headroom } = measure;
  return [
    thresholdText(threshold),
    shareText(rowsSkipped),
    shareText(warpsSkipped),
    formatDigits(errors.largest, 3),
    ratioText(largestRatio, 3),
    formatDigits(errors.largestRelative, 3),
    formatDigits(errors.rootMeanSquare, 3),
    ratioText(rootMeanSquareRatio, 3),
    formatDigits(errors.largestLse, 3),
    exponentText(largestWeight),
    exponentText(headroom.weights),
    exponentText(headroom.rowSum),
    exponentText(headroom.output),
    errors.notFinite === 0 ? '0' : formatGrouped(errors.notFinite),
  ];
}

function rescaleCaseText({ format, regime, maxOffset, thresholds }: RescaleCase): string[] {
  const offset = maxOffset === 0 ? '' : `, P = 2^(x + ${maxOffset})`;
  return [
    `${regime} in ${format}${offset}`,
    '',
    ...alignColumns([rescaleHeadings, ...thresholds.map(measureRow)], terminalWidth),
    '',
  ];
}

/** The profile of the rescale threshold as text. */
export function rescaleText(profile: RescaleProfile): string[] {
  const { cases, notes, summary } = profile;
  return [
    ...tradeOffHeadText(profile),
    "Measured: the share that was skipped of the rows' rescales that were due, and of the warps'; max",
    '|error| / max |O|; largest and RMS error in units of Σ p|v|; both relative to those of threshold 0 on',
    "the same problem; log2 of the largest weight, and of the room that is left in P's format and in fp32.",
    '',
    ...cases.flatMap(rescaleCaseText),
    ...thresholdLimitsText(profile),
    ...notesText(notes),
    ...summaryText(summary),
  ];
}

function limitName({ format, offset }: Pick<ThresholdLimit, 'format' | 'offset'>): string {
  return offset === 0 ? format : `${format}, offset ${offset}`;
}

function limitRow(limit: ThresholdLimit): string[] {
  const { exponent, weights, roundedWeights, rowSum, output, largest } = limit;
  return [
    limitName(limit),
    formatDigits(exponent, 7),
    ...[weights, roundedWeights, rowSum, output, largest].map((threshold) =>
      threshold === null ? 'none' : formatDigits(threshold, 6),
    ),
  ];
}

function outcomeText({ isSafe, shrinkage }: ThresholdOutcome): string {
  if (isSafe) return 'safe';
  if (shrinkage === null) return 'infinite';
  return `O -${formatPercentage(shrinkage)}`;
}

/** The proven limits of the rescale threshold as text. */
function thresholdLimitsText(profile: RescaleProfile): string[] {
  const { limits, trades, thresholds, problems } = profile;
  const columns = thresholds.map(thresholdText);
  const bySixteenBits = limits.filter(({ format }) => format === 'bf16');
  const tradeRows = trades.map((trade) => [
    `${trade.format}, threshold ${thresholdText(trade.threshold)}`,
    String(trade.offset),
    `2^${formatDigits(trade.subnormalUpTo, 4)}`,
    `2^${formatDigits(trade.lostUpTo, 4)}`,
    formatDigits(trade.range, 4),
  ]);
  return [
    `Proven limits: over all inputs of ${formatGroupedCount(problems.keys, 'key')} with a scale above 0 and maxima |m·c| <= ${limitScoreExponent}, P by`,
    'the special function unit or the polynomial of degree 3. "P": largest threshold with which no P',
    'exceeds the largest finite number; "rounded": none exceeds it by more than half an ulp, which rounding',
    `takes away; "l", "O": these do not overflow fp32, O for |v| <= ${formatPowerOfTwo(limitLargestValue)}.`,
    '',
    ...alignColumns(
      [['', 'x up to', 'P', 'rounded', 'l', 'O', 'all of P, l, O'], ...limits.map(limitRow)],
      terminalWidth,
    ),
    '',
    'What a threshold may do to P: "infinite", and then O is too or is NaN; "O -x": P is clamped while l is',
    'not, so that O may shrink by x although the LSE stays right.',
    '',
    ...alignColumns(
      [
        ['threshold', ...columns],
        ...limits.map((limit) => [limitName(limit), ...limit.outcomes.map(outcomeText)]),
      ],
      terminalWidth,
    ),
    '',
    `Elements of V up to which O cannot overflow with ${formatGroupedCount(problems.keys, 'key')} (bf16)`,
    '',
    ...alignColumns(
      [
        ['threshold', ...columns],
        ...bySixteenBits.map(({ offset, outcomes }) => [
          `offset ${offset}`,
          ...outcomes.map(({ largestValue }) => formatPowerOfTwo(largestValue)),
        ]),
      ],
      terminalWidth,
    ),
    '',
    'What a threshold costs at the low end: the largest whole offset that it allows, and what of weights',
    "relative to a row's largest, where that does not lag, is then subnormal or lost. FlashAttention-4 has",
    `offset ${limitOffsets.join(' for 16-bit and ')} for 8-bit inputs.`,
    '',
    ...alignColumns(
      [['', 'offset', 'subnormal to', 'lost to', 'range, log2'], ...tradeRows],
      terminalWidth,
    ),
    '',
  ];
}

const shareHeadings = [
  ...['', 'polynomial', 'max/max|O|', 'max', 'RMS', 'to unit', 'LSE max', 'LSE mean', 'to unit'],
];

function nameOf({ degree, tunings }: ShareMeasure): string {
  if (degree === null) return 'hardware only';
  return tunings.length === 0 ? `degree ${degree}` : tunings.join(', ');
}

function shareRow(measure: ShareMeasure): string[] {
  const { share, errors, rootMeanSquareRatio, largestLseRatio } = measure;
  return [
    nameOf(measure),
    formatPercentage(share),
    formatDigits(errors.largest, 3),
    formatDigits(errors.largestRelative, 3),
    formatDigits(errors.rootMeanSquare, 3),
    ratioText(rootMeanSquareRatio, 4),
    formatDigits(errors.largestLse, 3),
    formatDigits(errors.meanLse, 3),
    ratioText(largestLseRatio, 4),
  ];
}

function shareCaseText({
  format,
  regime,
  rescaleThreshold,
  shares,
}: PolynomialShareCase): string[] {
  return [
    `${regime} in ${format}, rescale threshold ${rescaleThreshold}`,
    '',
    ...alignColumns([shareHeadings, ...shares.map(shareRow)], terminalWidth),
    '',
  ];
}

/** The profile of the polynomial's share as text. */
export function polynomialShareText(profile: PolynomialShareProfile): string[] {
  const { cases, notes, summary } = profile;
  return [
    ...tradeOffHeadText(profile),
    'Error of O: max |error| / max |O|, then in units of Σ p|v|; error of the LSE in natural units; "to unit":',
    'RMS of O and largest error of the LSE relative to those of the special function unit alone.',
    '',
    ...notesText(notes),
    ...cases.flatMap(shareCaseText),
    ...summaryText(summary),
  ];
}
