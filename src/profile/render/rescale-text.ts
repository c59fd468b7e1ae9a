import type { RescaleProfile } from '../techniques/rescale.js';
import { thresholdText } from '../techniques/rescale-summary.js';
import type { RescaleCase, RescaleMeasure } from '../trade-offs/rescale-case.js';
import { digits, grouped } from './numbers.js';
import { alignColumns } from '../../align-columns.js';
import { thresholdLimitsText } from './threshold-limits-text.js';
import { notesText, summaryText, tradeOffHeadText } from './trade-off-head-text.js';
import { terminalWidth } from './terminal-width.js';

/** A share as a whole percentage; the ends are said of them alone. */
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

function ratioText(ratio: number | null): string {
  return ratio === null ? '-' : `×${digits(ratio, 3)}`;
}

const headings = [
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
    digits(errors.largest, 3),
    ratioText(largestRatio),
    digits(errors.largestRelative, 3),
    digits(errors.rootMeanSquare, 3),
    ratioText(rootMeanSquareRatio),
    digits(errors.largestLse, 3),
    exponentText(largestWeight),
    exponentText(headroom.weights),
    exponentText(headroom.rowSum),
    exponentText(headroom.output),
    errors.notFinite === 0 ? '0' : grouped(errors.notFinite),
  ];
}

function caseText({ format, regime, maxOffset, thresholds }: RescaleCase): string[] {
  const offset = maxOffset === 0 ? '' : `, P = 2^(x + ${maxOffset})`;
  return [
    `${regime} in ${format}${offset}`,
    '',
    ...alignColumns([headings, ...thresholds.map(measureRow)], terminalWidth),
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
    ...cases.flatMap(caseText),
    ...thresholdLimitsText(profile),
    ...notesText(notes),
    ...summaryText(summary),
  ];
}
