import {
  alignColumns,
  alignTextColumns,
  joinLargest,
  sparkline,
  wrapAtSpaces,
} from '../../layout/index.js';
import type {
  Plot,
  Profile,
  Underflow,
  UnitErrorProfile,
  WeightRoundingProfile,
} from '../../../profile/index.js';
import { exp2Text } from './exp2.js';
import { polynomialShareText, rescaleText } from './trade-offs.js';
import { rangeReductionText } from './range-reduction.js';
import { splitText } from './split.js';
import { headText, terminalWidth } from './head.js';
import { breaksText, cornersText, worstInputsText } from './inputs.js';
import { type DomainStyle, domainText } from './domain.js';
import { formatDigits } from '../../../words/index.js';

/** Number of columns of a sparkline: with names and numbers it stays within 80 columns. */
const columns = 40;

/** Length above which names are cut, so that the lines stay within 80 columns. */
const longestName = 24;

/** The largest |error| of each column of a plot's envelope; null where there is no error. */
function largestErrors({ least, most }: Plot['curves'][number]['envelope']): (number | null)[] {
  return Array.from(most, (high, i) =>
    least[i] > high ? null : Math.max(Math.abs(high), Math.abs(least[i])),
  );
}

function edge(value: number, scale: 'linear' | 'log2'): string {
  return scale === 'log2' ? `2^${Math.log2(value)}` : String(Number(value.toPrecision(6)));
}

function plotLines({ panel, quantity, curves }: Plot): string[] {
  const rows = curves.map(({ name, envelope }) => {
    const { values } = joinLargest(largestErrors(envelope), columns);
    const largest = values.reduce<number>((most, value) => Math.max(most, value ?? 0), 0);
    const label = [...name].slice(0, longestName).join('');
    return [label, sparkline(values).padEnd(columns), largest.toExponential(1)];
  });
  const { from, to, scale } = panel;
  return [
    '',
    `Sketch: largest |${quantity}|, x from ${edge(from, scale)} to ${edge(to, scale)}`,
    '',
    ...alignTextColumns(rows),
    '  Over the columns of each line █ is the number behind it.',
  ];
}

/** Sparklines of a profile's errors over the inputs, one paragraph for each plot; nothing without plots. */
export function profileSketch(profile: Profile): string {
  if (!('plots' in profile)) return '';
  return profile.plots.map((plot) => `${plotLines(plot).join('\n')}\n`).join('');
}

function linesOf(profile: Profile): string[] {
  switch (profile.technique) {
    case 'exp2':
      return exp2Text(profile);
    case 'range-reduction':
      return rangeReductionText(profile);
    case 'p-round':
      return weightRoundingText(profile);
    case 'split':
      return splitText(profile);
    case 'rescale':
      return rescaleText(profile);
    case 'polynomial-share':
      return polynomialShareText(profile);
    default:
      return unitText(profile);
  }
}

/** A line in at most 80 columns: its continuation goes below the text that follows the line's name. */
function fitted(line: string): string[] {
  if ([...line].length <= terminalWidth) return [line];
  const [name = ''] = /^ *(?:\S+(?: \S+)* {2,})?/.exec(line) ?? [];
  const margin = name.length > 2 && name.length < terminalWidth / 2 ? name.length : 2;
  const [first = '', ...rest] = wrapAtSpaces(line.slice(margin), terminalWidth - margin);
  const lines = [line.slice(0, margin) + first, ...rest.map((text) => ' '.repeat(margin) + text)];
  return lines.map((text) => text.trimEnd());
}

/** A profile as text for a terminal of 80 columns. */
export function renderProfile(profile: Profile): string {
  return linesOf(profile).flatMap(fitted).join('\n');
}

/** The profile of an instruction of the special function unit as text. */
function unitText(profile: UnitErrorProfile): string[] {
  const style: DomainStyle = {
    reference: profile.reference,
    baseline: null,
    shares: 'correctness',
    variable: 'x',
  };
  const { domains, corners } = profile;
  return [
    ...headText(profile),
    ...domains.flatMap((domain) => [
      ...domainText(domain, style),
      ...worstInputsText(domain),
      ...breaksText(domain),
    ]),
    ...cornersText(corners),
  ];
}

function underflowRow(underflow: Underflow): string[] {
  const { format, offset, lostUpTo, lostUpToX, subnormalUpTo, subnormalUpToX } = underflow;
  return [
    offset === 0 ? format : `${format}, P·2^${offset}`,
    `${formatDigits(lostUpTo, 9)}`,
    formatDigits(lostUpToX, 9),
    formatDigits(subnormalUpTo, 9),
    formatDigits(subnormalUpToX, 9),
  ];
}

/** The profile of the rounding of P as text. */
function weightRoundingText(profile: WeightRoundingProfile): string[] {
  const style: DomainStyle = {
    reference: profile.reference,
    baseline: null,
    shares: 'underflow',
    variable: 'p',
  };
  return [
    ...headText(profile, 'p'),
    ...profile.domains.flatMap((domain) => domainText(domain, style)),
    'Underflow of P = 2^(x + offset)',
    '',
    ...alignColumns(
      [
        ['', '0 up to', 'so for x up to', 'subnormal up to', 'so for x up to'],
        ...profile.underflows.map(underflowRow),
      ],
      terminalWidth,
    ),
    '',
  ];
}
