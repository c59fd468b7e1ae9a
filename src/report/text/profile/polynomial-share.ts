import type {
  PolynomialShareCase,
  PolynomialShareProfile,
  ShareMeasure,
} from '../../../profile/index.js';
import { formatDigits, formatPercentage } from '../../../words/index.js';
import { alignColumns } from '../../layout/index.js';
import { notesText, summaryText, terminalWidth, tradeOffHeadText } from './head.js';

const headings = [
  ...['', 'polynomial', 'max/max|O|', 'max', 'RMS', 'to unit', 'LSE max', 'LSE mean', 'to unit'],
];

function nameOf({ degree, tunings }: ShareMeasure): string {
  if (degree === null) return 'hardware only';
  return tunings.length === 0 ? `degree ${degree}` : tunings.join(', ');
}

function ratioText(ratio: number | null): string {
  return ratio === null ? '-' : `×${formatDigits(ratio, 4)}`;
}

function shareRow(measure: ShareMeasure): string[] {
  const { share, errors, rootMeanSquareRatio, largestLseRatio } = measure;
  return [
    nameOf(measure),
    formatPercentage(share),
    formatDigits(errors.largest, 3),
    formatDigits(errors.largestRelative, 3),
    formatDigits(errors.rootMeanSquare, 3),
    ratioText(rootMeanSquareRatio),
    formatDigits(errors.largestLse, 3),
    formatDigits(errors.meanLse, 3),
    ratioText(largestLseRatio),
  ];
}

function caseText({ format, regime, rescaleThreshold, shares }: PolynomialShareCase): string[] {
  return [
    `${regime} in ${format}, rescale threshold ${rescaleThreshold}`,
    '',
    ...alignColumns([headings, ...shares.map(shareRow)], terminalWidth),
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
    ...cases.flatMap(caseText),
    ...summaryText(summary),
  ];
}
