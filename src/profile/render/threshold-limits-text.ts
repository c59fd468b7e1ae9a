import {
  limitLargestValue,
  limitOffsets,
  limitScoreExponent,
  type ThresholdLimit,
  type ThresholdOutcome,
} from '../limits/threshold-limits.js';
import type { RescaleProfile } from '../techniques/rescale.js';
import { thresholdText } from '../techniques/rescale-summary.js';
import { counted, digits, percentage, powerOfTwo } from './numbers.js';
import { alignColumns } from '../../align-columns.js';
import { terminalWidth } from './terminal-width.js';

function limitName({ format, offset }: Pick<ThresholdLimit, 'format' | 'offset'>): string {
  return offset === 0 ? format : `${format}, offset ${offset}`;
}

function limitRow(limit: ThresholdLimit): string[] {
  const { exponent, weights, roundedWeights, rowSum, output, largest } = limit;
  return [
    limitName(limit),
    digits(exponent, 7),
    ...[weights, roundedWeights, rowSum, output, largest].map((threshold) =>
      threshold === null ? 'none' : digits(threshold, 6),
    ),
  ];
}

function outcomeText({ isSafe, shrinkage }: ThresholdOutcome): string {
  if (isSafe) return 'safe';
  if (shrinkage === null) return 'infinite';
  return `O -${percentage(shrinkage)}`;
}

/** The proven limits of the rescale threshold as text. */
export function thresholdLimitsText(profile: RescaleProfile): string[] {
  const { limits, trades, thresholds, problems } = profile;
  const columns = thresholds.map(thresholdText);
  const bySixteenBits = limits.filter(({ format }) => format === 'bf16');
  const tradeRows = trades.map((trade) => [
    `${trade.format}, threshold ${thresholdText(trade.threshold)}`,
    String(trade.offset),
    `2^${digits(trade.subnormalUpTo, 4)}`,
    `2^${digits(trade.lostUpTo, 4)}`,
    digits(trade.range, 4),
  ]);
  return [
    `Proven limits: over all inputs of ${counted(problems.keys, 'key')} with a scale above 0 and maxima |m·c| <= ${limitScoreExponent}, P by`,
    'the special function unit or the polynomial of degree 3. "P": largest threshold with which no P',
    'exceeds the largest finite number; "rounded": none exceeds it by more than half an ulp, which rounding',
    `takes away; "l", "O": these do not overflow fp32, O for |v| <= ${powerOfTwo(limitLargestValue)}.`,
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
    `Elements of V up to which O cannot overflow with ${counted(problems.keys, 'key')} (bf16)`,
    '',
    ...alignColumns(
      [
        ['threshold', ...columns],
        ...bySixteenBits.map(({ offset, outcomes }) => [
          `offset ${offset}`,
          ...outcomes.map(({ largestValue }) => powerOfTwo(largestValue)),
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
